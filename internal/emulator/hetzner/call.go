// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

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
	// ids are the numbers of the path, in order.
	ids    []int64
	query  url.Values
	header http.Header
}

// id is the first number of the path.
func (c *call) id() int64 { return c.ids[0] }

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
		var problems fields
		problems.add(wrongType.Field, "must not be a %s", wrongType.Value)
		return problems.err()
	default:
		return refused(http.StatusBadRequest, "json_error", "invalid json in request body")
	}
}

// newObject numbers a new thing of the project.
func (c *call) newObject(name string, labels map[string]string) object {
	if labels == nil {
		labels = map[string]string{}
	}
	o := object{ID: c.s.newID(), Name: name, Created: c.now, Labels: labels}
	if rule, ok := emulator.FaultFor(c.r.Context(), emulator.KindHideFromLists); ok {
		o.HiddenUntil = c.now.Add(time.Duration(rule.Delay))
	}
	return o
}

// update changes an object's name and labels as the PUT of every kind does: a
// field that is absent stays, labels replace the whole map.
func (c *call) update(kind string, o *object, taken func(name string) bool, check func(fields *fields, name string)) error {
	var request struct {
		Name   *string            `json:"name"`
		Labels *map[string]string `json:"labels"`
	}
	if err := c.decode(&request); err != nil {
		return err
	}
	var problems fields
	if request.Name != nil {
		check(&problems, *request.Name)
	}
	if request.Labels != nil {
		checkLabels(&problems, *request.Labels)
	}
	if err := problems.err(); err != nil {
		return err
	}
	if request.Name != nil && *request.Name != o.Name && taken(*request.Name) {
		return notUnique(kind, "name")
	}
	if request.Name != nil {
		o.Name = *request.Name
	}
	if request.Labels != nil {
		o.Labels = *request.Labels
		if o.Labels == nil {
			o.Labels = map[string]string{}
		}
	}
	return nil
}

// nameTaken tells whether one of the records has the name.
func nameTaken[T based](records map[int64]T) func(string) bool {
	return func(name string) bool {
		for _, record := range records {
			if record.base().Name == name {
				return true
			}
		}
		return false
	}
}

// anyName is the check of names that follow no rule but to exist.
func anyName(problems *fields, name string) {
	if name == "" || len(name) > 128 {
		problems.add("name", "must have 1 to 128 characters")
	}
}

// idOrName is a reference in a request: an id as number or as text, or a name.
type idOrName string

// UnmarshalJSON takes a number or a string.
func (v *idOrName) UnmarshalJSON(data []byte) error {
	var number int64
	if err := json.Unmarshal(data, &number); err == nil {
		*v = idOrName(strconv.FormatInt(number, 10))
		return nil
	}
	return json.Unmarshal(data, (*string)(v))
}

// is tells whether the reference means the thing with this id and name.
func (v idOrName) is(id int64, name string) bool {
	return string(v) == strconv.FormatInt(id, 10) || name != "" && string(v) == name
}

// stamp is a time as the API writes it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
