// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// backend is the service behind its front.
type backend struct{ s *Service }

func (b backend) Name() string { return "proxmox" }

func (b backend) BasePath() string { return "/api2/json" }

func (b backend) Kinds() []emulator.Kind {
	return []emulator.Kind{
		emulator.KindFailAction, emulator.KindHideFromLists, emulator.KindLocked, emulator.KindLockTimeout,
		emulator.KindCapacity, emulator.KindNodeDown, emulator.KindTaskWarnings,
	}
}

// maxPost is the largest request body, in bytes.
const maxPost = 512 << 10

// Refuse answers with an error of the API and no effect.
func (b backend) Refuse(w http.ResponseWriter, r *http.Request, rule emulator.Rule) {
	b.fail(w, b.format(r), statusError(rule.Status))
}

// format is what answers are written in: json or extjs, or nothing.
func (b backend) format(r *http.Request) string {
	rest, found := strings.CutPrefix(r.URL.Path, "/api2/")
	format, _, more := strings.Cut(rest, "/")
	if !found || !more || (format != "json" && format != "extjs") {
		return ""
	}
	return format
}

// Serve answers a call. The order of the checks is that of the real one: the
// shape of the request, the token, the route, privileges, the node, parameters.
func (b backend) Serve(w http.ResponseWriter, r *http.Request) {
	format := b.format(r)
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = b.shape(r, format, body)
	}
	if err != nil {
		b.fail(w, format, err)
		return
	}
	user, project, known := b.authenticate(r)
	if !known {
		pause(r.Context(), b.s.options.AuthDelay)
		b.fail(w, format, refused(http.StatusUnauthorized, "%s", user))
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/api2/"+format)
	route, ids, ok := b.s.match(r.Method, path)
	if !ok {
		b.fail(w, format, refused(http.StatusNotImplemented, "Method '%s %s' not implemented", r.Method, strings.TrimSuffix(path, "/")))
		return
	}
	params, err := parameters(r, body)
	if err != nil {
		b.fail(w, format, err)
		return
	}
	c := &call{s: b.s, r: r, user: user, ids: ids, params: params}
	result, err := c.serve(project, route)
	if err != nil {
		b.fail(w, format, err)
		return
	}
	envelope := map[string]any{"data": result}
	if paged, ok := result.(page); ok {
		envelope["data"], envelope["total"] = paged.rows, paged.total
	}
	if format == "extjs" {
		envelope["success"] = 1
	}
	write(w, http.StatusOK, envelope)
}

// page is a part of a list, with the length of all of it.
type page struct {
	rows  any
	total int
}

// shape refuses requests that the server doesn't read.
func (b backend) shape(r *http.Request, format string, body []byte) error {
	const unsupported = http.StatusNotImplemented
	bare := r.Method == http.MethodGet || r.Method == http.MethodDelete || r.Method == http.MethodHead
	switch {
	case format == "":
		return refused(unsupported, "no such uri '%s'", r.URL.Path)
	case len(r.TransferEncoding) > 0 || (r.ContentLength < 0 && len(body) > 0):
		return refused(unsupported, "chunked transfer encoding not supported")
	case bare && len(body) > 0:
		return refused(unsupported, "Unexpected content for method '%s'", r.Method)
	case len(body) > maxPost:
		return refused(unsupported, "for data too large")
	}
	return nil
}

var (
	tokenHeader = regexp.MustCompile(`(?:^|\s)PVEAPIToken(?:=| )([^;]*)`)
	tokenID     = regexp.MustCompile(`^[^\s:/]+@[A-Za-z][A-Za-z0-9.\-_]+![A-Za-z][A-Za-z0-9.\-_]+$`)
)

// authenticate finds whose token a call carries, as user@realm!tokenid, and the
// project it sees; otherwise user is what to say.
func (b backend) authenticate(r *http.Request) (user, project string, ok bool) {
	matched := tokenHeader.FindStringSubmatch(r.Header.Get("Authorization"))
	if matched == nil {
		return "No ticket", "", false
	}
	token := matched[1]
	if decoded, err := url.PathUnescape(token); err == nil {
		token = decoded
	}
	at := strings.LastIndex(token, "=")
	if at < 0 || at == len(token)-1 || !tokenID.MatchString(token[:at]) {
		return "Authentication failed!", "", false
	}
	project, ok = b.s.options.Projects.Find(token)
	if !ok {
		return "Authentication failed!", "", false
	}
	return token[:at], project, true
}

// parameters are those of the query and the body, a form or JSON.
func parameters(r *http.Request, body []byte) (map[string]string, error) {
	params := map[string]string{}
	add := func(values url.Values) {
		for name, all := range values {
			// A list is repeated; the parameters here that take one take it so.
			params[name] = strings.Join(all, "\x00")
		}
	}
	if len(body) > 0 {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err == nil && kind == "application/json" {
			if err := jsonParameters(body, params); err != nil {
				return nil, err
			}
		} else {
			values, err := url.ParseQuery(string(body))
			if err != nil {
				return nil, died("unable to parse parameters: %v", err)
			}
			add(values)
		}
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, died("unable to parse parameters: %v", err)
	}
	add(values)
	return params, nil
}

func jsonParameters(body []byte, params map[string]string) error {
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.UseNumber()
	var values map[string]any
	if err := decoder.Decode(&values); err != nil {
		return died("malformed JSON string: %v", err)
	}
	for name, value := range values {
		switch v := value.(type) {
		case nil:
		case bool:
			params[name] = "0"
			if v {
				params[name] = "1"
			}
		case string:
			params[name] = v
		case json.Number:
			params[name] = v.String()
		case []any:
			words := make([]string, len(v))
			for i, word := range v {
				words[i] = fmt.Sprint(word)
			}
			params[name] = strings.Join(words, "\x00")
		default:
			return badParam(name, "type check ('string') failed - got HASH")
		}
	}
	return nil
}

// fail answers with an error. The text is in the status line, and from version 9
// on in the body too.
func (b backend) fail(w http.ResponseWriter, format string, err error) {
	var known *apiError
	if !errors.As(err, &known) {
		known = &apiError{status: http.StatusInternalServerError, message: err.Error()}
	}
	if known.status == http.StatusUnauthorized {
		// Why is in the status line only, whatever the format.
		emulator.SetReason(w, known.reason())
		w.WriteHeader(known.status)
		return
	}
	envelope := map[string]any{"data": nil}
	if b.s.options.Version >= 9 || format == "extjs" {
		envelope["message"] = known.message + "\n"
	}
	if len(known.params) > 0 {
		envelope["errors"] = known.params
	}
	if format == "extjs" {
		envelope["success"], envelope["status"] = 0, known.status
		write(w, http.StatusOK, envelope)
		return
	}
	emulator.SetReason(w, known.reason())
	write(w, known.status, envelope)
}

func write(w http.ResponseWriter, status int, envelope any) {
	body, err := json.Marshal(envelope)
	if err != nil {
		status = http.StatusInternalServerError
		body = fmt.Appendf(nil, `{"data":null,"message":%q}`, err)
	}
	header := w.Header()
	header.Set("Server", "pve-api-daemon/3.0")
	header.Set("Cache-Control", "max-age=0")
	header.Set("Content-Type", "application/json;charset=UTF-8")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	// The front keeps the answer in memory, where writing can't fail.
	_, _ = w.Write(body)
}

// pause waits, unless the context ends first, which it reports as false.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
