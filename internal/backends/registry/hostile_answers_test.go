// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// elsewhere is a host that no request may reach.
const elsewhere = "elsewhere.example"

// evil is text that ends a log line, colours a terminal, turns what follows around, and
// is no UTF-8 at its end, as JSON: the escapes are JSON's.
const evil = `x\n2026-01-01 [ERROR] forged\r\u001b[31m\u0007\u009b2J\u202egnol\u2028\u0000\"%s%n`

// huge is the size of a body that is too long.
const huge = 50 << 20

// kindsOfAnswers are the ways in which an API can misbehave, by name, each made anew for
// every use.
func kindsOfAnswers() map[string]func() hostile {
	out := map[string]func() hostile{}
	always := map[string]hostile{
		"never answers": func(*http.Response, []byte) (*http.Response, error) { return nil, errSilent },
		"resets":        func(*http.Response, []byte) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
		"drips": func(good *http.Response, _ []byte) (*http.Response, error) {
			return with(good, &dripping{every: func(ctx context.Context) error { return backends.Sleep(ctx, 7*time.Second) }}), nil
		},
		"stops in the middle": func(good *http.Response, _ []byte) (*http.Response, error) {
			return with(good, &dripping{every: func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}}), nil
		},
		"breaks off": func(good *http.Response, body []byte) (*http.Response, error) {
			return with(good, io.MultiReader(bytes.NewReader(body[:len(body)/2]), broken{})), nil
		},
		"odd headers": func(good *http.Response, body []byte) (*http.Response, error) {
			for _, name := range []string{
				"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", "Retry-After", "X-Request-Id", "X-Correlation-Id", "Content-Length", "Date",
			} {
				good.Header.Set(name, "-99999999999999999999\x1b[31m")
			}
			return with(good, bytes.NewReader(body)), nil
		},
		"another type": func(good *http.Response, body []byte) (*http.Response, error) {
			good.Header.Set("Content-Type", "text/html")
			return with(good, bytes.NewReader(body)), nil
		},
		"evil reason": func(good *http.Response, _ []byte) (*http.Response, error) {
			good.StatusCode, good.Status = 500, "500 \x1b[31mforged\u202e "+credential
			return with(good, strings.NewReader("")), nil
		},
	}
	statuses(always)
	bodies(always)
	trees(always)
	for name, answer := range always {
		out[name] = func() hostile { return answer }
	}
	out["pages: always another"] = func() hostile {
		number := 1
		return func(good *http.Response, body []byte) (*http.Response, error) {
			number++
			return paged(number-1, number, nil, 0)(good, body)
		}
	}
	return out
}

// statuses are answers of all statuses with refusals that fit every cloud's form, and
// repeat the credential, and redirects to other hosts.
func statuses(out map[string]hostile) {
	refusal := `{"error":{"code":"` + evil + `","message":"` + evil + credential + `","details":{"fields":[{"name":"` + evil +
		`","messages":["` + evil + `"]}],"limits":[{"name":"` + evil + `"}]}},"id":"` + evil + `","message":"` + evil + credential +
		`","request_id":"` + evil + `","errors":{"` + evil + `":"` + evil + `"},"data":null}`
	odd := `{"error":{"code":7,"message":[],"details":"x"},"id":{},"message":7,"errors":[],"data":7}`
	for _, status := range []int{
		201, 202, 203, 204, 205, 206, 226, 300, 304, 305, 400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 412, 418, 422, 423, 425, 429,
		431, 451, 500, 501, 502, 503, 504, 511, 595, 596, 599, 600, 999,
	} {
		for name, body := range map[string]string{"evil": refusal, "odd": odd, "html": "<html>" + credential + "\x1b[31m", "empty": ""} {
			if status%100 != 0 && status != 404 && status != 429 && name != "evil" {
				continue
			}
			out[fmt.Sprintf("status %d %s", status, name)] = func(good *http.Response, _ []byte) (*http.Response, error) {
				good.StatusCode, good.Status = status, fmt.Sprintf("%d %s", status, http.StatusText(status))
				good.Header.Set("X-Request-Id", "\x1b[31m"+credential)
				return with(good, strings.NewReader(body)), nil
			}
		}
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{"https://api." + elsewhere + "/v1", "http://" + elsewhere, "//" + elsewhere + "/x", "\x1b", ""} {
			out[fmt.Sprintf("redirect %d to %q", status, to)] = func(good *http.Response, body []byte) (*http.Response, error) {
				good.StatusCode, good.Status = status, strconv.Itoa(status)
				good.Header["Location"] = []string{to}
				return with(good, bytes.NewReader(body)), nil
			}
		}
	}
}

// bodies are whole bodies in place of the good one, those of 50 MiB among them.
func bodies(out map[string]hostile) {
	for name, body := range map[string]string{
		"nothing": "", "null": "null", "a list": "[]", "an object": "{}", "a text": `"x"`, "a number": "0", "true": "true", "a page": "<html>\x1b[31m",
		"no text": "\xff\xfe\x00{", "a mark": "\ufeff{}", "two": "{}{}", "open lists": strings.Repeat("[", 1<<20),
		"open objects": strings.Repeat(`{"a":`, 1<<18), "deep lists": strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"evil text": `{"` + evil + `":"` + evil + `"}`,
	} {
		out["body: "+name] = func(good *http.Response, _ []byte) (*http.Response, error) {
			return with(good, strings.NewReader(body)), nil
		}
	}
	for name, unit := range map[string]string{"spaces": " ", "lists": "[", "commas": ",", "bytes": "\xff", "digits": "9"} {
		out["50 MiB of "+name] = func(good *http.Response, _ []byte) (*http.Response, error) {
			return with(good, endless(unit)), nil
		}
	}
	for name, unit := range map[string]string{"objects": "{},", "nulls": "null,", "lists": "[],", "texts": `"",`, "numbers": "0,", "pages": `{"id":1,"name":"x"},`} {
		out["50 MiB of "+name+" in its lists"] = func(good *http.Response, body []byte) (*http.Response, error) {
			at := bytes.IndexByte(body, '[')
			if at < 0 {
				at = max(0, bytes.IndexByte(body, ':'))
				return with(good, io.MultiReader(bytes.NewReader(body[:at+1]), strings.NewReader("["), endless(unit))), nil
			}
			return with(good, io.MultiReader(bytes.NewReader(body[:at+1]), endless(unit))), nil
		}
	}
	out["50 MiB of one text"] = func(good *http.Response, body []byte) (*http.Response, error) {
		at := max(0, bytes.Index(body, []byte(`:"`)))
		return with(good, io.MultiReader(bytes.NewReader(body[:min(at+2, len(body))]), endless("a"))), nil
	}
	out["50 MiB announced"] = func(good *http.Response, body []byte) (*http.Response, error) {
		bad := with(good, io.MultiReader(bytes.NewReader(body), endless(" ")))
		bad.ContentLength = huge
		return bad, nil
	}
}

// trees are good bodies in which all parts of a kind, or what tells of further pages,
// became something else.
func trees(out map[string]hostile) {
	evilText := decoded(`"` + evil + `"`)
	for name, raw := range map[string]string{
		"null": "null", "true": "true", "a list": "[]", "nulls": "[null]", "lists": "[[[]]]", "an object": "{}", "objects": "[{}]", "-1": "-1", "0": "0", "1.5": "1.5",
		"2^63": "9223372036854775808", "2^63-1": "9223372036854775807", "-2^63": "-9223372036854775808", "1e400": "1e400", "1e18": "1e18", "digits": strings.Repeat("9", 4000),
		"evil": `"` + evil + `"`, "empty": `""`, "a number's text": `"1e999999999"`, "dots": `"../.."`, "a year": `"0000-00-00T00:00:00Z"`, "ip": `"::ffff:0:0/129"`,
	} {
		value := decoded(raw)
		for kind, is := range map[string]func(any) bool{
			"texts":   func(v any) bool { _, ok := v.(string); return ok },
			"numbers": func(v any) bool { _, ok := v.(json.Number); return ok },
			"bools":   func(v any) bool { _, ok := v.(bool); return ok },
			"lists":   func(v any) bool { _, ok := v.([]any); return ok },
			"objects": func(v any) bool { _, ok := v.(map[string]any); return ok },
		} {
			out["all "+kind+" are "+name] = rewritten(func(depth int, _ string, v any) (any, bool) { return value, depth > 0 && is(v) })
		}
	}
	out["evil names"] = rewritten(func(_ int, name string, v any) (any, bool) {
		_, ok := v.(string)
		return evilText, ok && name != "id" && name != "upid" && name != "data"
	})
	out["numbers grow"] = rewritten(func(depth int, _ string, v any) (any, bool) {
		n, ok := v.(json.Number)
		return json.Number(string(n) + strings.Repeat("0", 12)), ok && depth > 2
	})
	out["pages: a thousand"] = paged(1, 2, 1000, 200_000)
	out["pages: too many"] = paged(1, 2, 1<<40, 1<<60)
	out["pages: less than none"] = paged(-1, -2, -(1 << 40), -(1 << 60))
	out["pages: the next is this one"] = paged(1, 1, nil, 0)
	out["pages: none said"] = changed(func(body map[string]any) { delete(body, "meta") })
	out["pages: meta is null"] = changed(func(body map[string]any) { body["meta"] = nil })
}

// paged is a good body that says which pages there are, with links to another host.
func paged(page, next int, last any, total int) hostile {
	return changed(func(body map[string]any) {
		body["meta"] = map[string]any{"total": total, "pagination": map[string]any{
			"page": page, "per_page": 50, "previous_page": nil, "next_page": next, "last_page": last, "total_entries": total,
		}}
		body["links"] = map[string]any{"pages": map[string]any{
			"next": "https://" + elsewhere + "/v2/x?page=2", "last": fmt.Sprintf("https://%s/v2/x?page=%v", elsewhere, last),
		}}
	})
}

// changed is a good body with another member.
func changed(set func(body map[string]any)) hostile {
	return func(good *http.Response, body []byte) (*http.Response, error) {
		tree, ok := decoded(string(body)).(map[string]any)
		if !ok {
			return with(good, bytes.NewReader(body)), nil
		}
		set(tree)
		return with(good, bytes.NewReader(encoded(tree))), nil
	}
}

// rewritten is a good body in which parts are replaced, as change says by their depth and
// the name of the member that they are or are in.
func rewritten(change func(depth int, name string, v any) (any, bool)) hostile {
	return func(good *http.Response, body []byte) (*http.Response, error) {
		var walk func(depth int, name string, v any) any
		walk = func(depth int, name string, v any) any {
			if other, ok := change(depth, name, v); ok {
				return other
			}
			switch x := v.(type) {
			case map[string]any:
				out := map[string]any{}
				for _, k := range slices.Sorted(maps.Keys(x)) {
					out[k] = walk(depth+1, k, x[k])
				}
				return out
			case []any:
				out := make([]any, len(x))
				for i := range x {
					out[i] = walk(depth+1, name, x[i])
				}
				return out
			}
			return v
		}
		tree := decoded(string(body))
		if tree == nil {
			return with(good, bytes.NewReader(body)), nil
		}
		return with(good, bytes.NewReader(encoded(walk(0, "", tree)))), nil
	}
}

func decoded(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var out any
	if d.Decode(&out) != nil {
		return nil
	}
	return out
}

func encoded(tree any) []byte {
	out, err := json.Marshal(tree)
	if err != nil {
		return nil
	}
	return out
}

// with is an answer with another body, of a length that isn't said.
func with(answer *http.Response, body io.Reader) *http.Response {
	out := *answer
	out.ContentLength = -1
	if closer, ok := body.(io.ReadCloser); ok {
		out.Body = closer
	} else {
		out.Body = io.NopCloser(body)
	}
	return &out
}

// endless is a body of [huge] bytes.
func endless(unit string) io.Reader {
	chunk := strings.Repeat(unit, max(1, 4096/len(unit)))
	return io.LimitReader(&repeated{chunk: chunk}, huge)
}

type repeated struct {
	chunk string
	at    int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		c := copy(p[n:], r.chunk[r.at:])
		n, r.at = n+c, (r.at+c)%len(r.chunk)
	}
	return n, nil
}

// broken is where a connection ends.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
