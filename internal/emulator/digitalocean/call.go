// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// call is one call of the API while it is served. It holds the service's lock.
type call struct {
	s   *Service
	p   *project
	r   *http.Request
	now time.Time
	// ids are the {id} parts of the path, in order, as they are written.
	ids   []string
	query url.Values
}

// id is the first id of the path.
func (c *call) id() string { return c.ids[0] }

// number is an id of the path as a number; 0, which no thing has, when it isn't one.
func (c *call) number(i int) int64 {
	n, err := strconv.ParseInt(c.ids[i], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// decode reads the body into a request. An empty body is an empty object.
func (c *call) decode(request any) error {
	body, err := io.ReadAll(c.r.Body)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return nil
	}
	err = json.Unmarshal(body, request)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrongType):
		return unprocessable("%s is invalid", wrongType.Field)
	default:
		return badRequest("Your request body was malformed.")
	}
}

// fault is the rule of a kind that applies to the call.
func (c *call) fault(kind emulator.Kind) (emulator.Rule, bool) {
	return emulator.FaultFor(c.r.Context(), kind)
}

// text is a reference in a request: a string, or a number as text. null is empty.
type text string

// UnmarshalJSON takes a number, a string or null.
func (v *text) UnmarshalJSON(data []byte) error {
	var number int64
	if string(data) != "null" && json.Unmarshal(data, &number) == nil {
		*v = text(strconv.FormatInt(number, 10))
		return nil
	}
	return json.Unmarshal(data, (*string)(v))
}

// number is the reference as a number; 0, which no thing has, when it isn't one.
func (v text) number() int64 {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// volumeRef is a volume in a request: its id, or (from godo) an object with it.
type volumeRef string

// UnmarshalJSON takes a string or an object.
func (v *volumeRef) UnmarshalJSON(data []byte) error {
	var object struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(data, &object); err == nil {
		*v = volumeRef(object.ID)
		return nil
	}
	return json.Unmarshal(data, (*string)(v))
}

// stamp is a time as the API writes it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
