// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

// bodyOf is a body as a backend reads it.
func bodyOf(ctx context.Context, body io.Reader, length int64) io.ReadCloser {
	answer := &http.Response{Body: io.NopCloser(body), ContentLength: length}
	boundAnswer(ctx, answer)
	return answer.Body
}

func TestAnswersAreBounded(t *testing.T) {
	rows := func(n int, row string) string {
		return `{"data":[` + strings.TrimSuffix(strings.Repeat(row+",", n), ",") + `]}`
	}
	for name, test := range map[string]struct {
		body   io.Reader
		length int64
		want   error
	}{
		"nothing":                {strings.NewReader(""), 0, nil},
		"what just fits":         {strings.NewReader(strings.Repeat(" ", MaxAnswer)), -1, nil},
		"one more":               {strings.NewReader(strings.Repeat(" ", MaxAnswer+1)), -1, errTooLong},
		"too long, and said so":  {strings.NewReader("{}"), MaxAnswer + 1, errTooLong},
		"a large list":           {strings.NewReader(rows(maxElements, `{"vmid":100,"name":"a, b [c] {d}","tags":"x;y"}`)), -1, nil},
		"a list that is larger":  {strings.NewReader(rows(maxElements+1, `{}`)), -1, errTooMany},
		"nulls":                  {strings.NewReader(rows(maxElements+1, `null`)), -1, errTooMany},
		"lists of lists":         {strings.NewReader(rows(1000, `[`+strings.Repeat("0,", 600)+`0]`)), -1, errTooMany},
		"members":                {strings.NewReader(`{` + strings.Repeat(`"a":0,`, maxElements) + `"a":0}`), -1, errTooMany},
		"as deep as may be":      {strings.NewReader(strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting)), -1, nil},
		"deeper":                 {strings.NewReader(strings.Repeat(`{"a":`, maxNesting+1)), -1, errTooDeep},
		"no JSON":                {strings.NewReader(`]]]]}}}} "unclosed ,,,,`), -1, nil},
		"escapes":                {strings.NewReader(`{"a":"\\","b":"\"` + strings.Repeat("[,{", maxElements) + `"}`), -1, nil},
		"it breaks off":          {io.MultiReader(strings.NewReader("{"), iotest.ErrReader(io.ErrUnexpectedEOF)), -1, io.ErrUnexpectedEOF},
		"a connection that ends": {iotest.ErrReader(errors.New("reset")), -1, errors.New("reset")},
	} {
		body := bodyOf(t.Context(), iotest.HalfReader(test.body), test.length)
		text, err := io.ReadAll(body)
		if fmt.Sprint(err) != fmt.Sprint(test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		if _, again := body.Read(make([]byte, 1)); test.want != nil && again == nil {
			t.Errorf("%s: it goes on after %d bytes", name, len(text))
		}
	}
}

func TestPagesOfAListAreBoundedTogether(t *testing.T) {
	ctx := ListContext(t.Context())
	if ListContext(ctx) != ctx {
		t.Error("a list in a list counts by itself")
	}
	read := 0
	for {
		text, err := io.ReadAll(bodyOf(ctx, strings.NewReader(strings.Repeat(" ", MaxAnswer)), -1))
		if err != nil {
			if !errors.Is(err, errLongList) || AnswerProblem(err) == "" {
				t.Errorf("got %v", err)
			}
			break
		}
		if read += len(text); read > MaxList {
			t.Fatalf("%d bytes were read", read)
		}
	}
	if read == 0 {
		t.Error("nothing was read")
	}
	if _, err := io.ReadAll(bodyOf(t.Context(), strings.NewReader("{}"), 2)); err != nil {
		t.Errorf("another call: %v", err)
	}
}

func TestAnswerProblem(t *testing.T) {
	for text, err := range map[string]error{
		"":                                   errors.New("invalid character"),
		": it is longer than 16 MiB":         fmt.Errorf("reading: %w", errTooLong),
		": no whole answer came within 1m0s": fmt.Errorf("reading: %w", context.DeadlineExceeded),
		": it breaks off":                    io.ErrUnexpectedEOF,
		": it is nested too deeply":          errTooDeep,
		": it holds more than any list of this API has": errTooMany,
	} {
		if got := AnswerProblem(err); got != text {
			t.Errorf("%v: %q, want %q", err, got, text)
		}
	}
	if got := AnswerProblem(nil); got != "" {
		t.Errorf("nothing: %q", got)
	}
}

// An answer that is too much is not asked for again.
func TestAnswersThatPassABoundAreNotRepeated(t *testing.T) {
	for _, test := range []struct {
		err   error
		tries int
	}{{errTooLong, 1}, {errTooMany, 1}, {errTooDeep, 1}, {errLongList, 1}, {errBreaksOff, transientTries}, {errNoAnswer, transientTries}} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			err := Retry(t.Context(), Idempotent, func(context.Context) error {
				tries++
				return &Error{Code: ProviderError, Ambiguous: true, Err: fmt.Errorf("reading: %w", test.err)}
			})
			if err == nil || tries != test.tries {
				t.Errorf("%v: %d tries, %v", test.err, tries, err)
			}
		})
	}
}

// The shape that is followed is that of the JSON.
func FuzzAnswerShape(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":"]\"}"}]}`, `[[],[[]],{}]`, `"\\"`, `{"":{"":{"":[null]}}}`, `]{`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s shape
		problem := s.take([]byte(text))
		if !json.Valid([]byte(text)) {
			return
		}
		depth, members := measured(json.NewDecoder(strings.NewReader(text)))
		if tooMuch := depth > maxNesting; (problem != nil) != tooMuch && members < maxElements {
			t.Errorf("%q is %d deep, and %v", text, depth, problem)
		}
		if problem == nil && (s.depth != 0 || s.quoted) {
			t.Errorf("%q ends at depth %d", text, s.depth)
		}
	})
}

// measured is how deep a JSON text is and how many parts it has.
func measured(d *json.Decoder) (deepest, parts int) {
	depth := 0
	for {
		token, err := d.Token()
		if err != nil {
			return deepest, parts
		}
		parts++
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
			deepest = max(deepest, depth)
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
}
