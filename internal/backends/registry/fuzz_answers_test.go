// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package registry_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Anything in place of one part of an answer, or of all of it: to any call of the
// contract, from any of its requests on. what counts the calls of a cloud, part the
// parts of the answer, its whole being the first. It holds every decoder of a cloud's
// answer, and all that is done with what it decodes.
func FuzzAnswer(f *testing.F) {
	for i, value := range []string{
		"", "null", "[]", "{}", `"x"`, "0", "-1", "1e400", "9223372036854775807", "[null]", "[[]]", "[{}]", "<html>", "{", `"` + evil + `"`, `"1e9"`,
	} {
		for which := range uint8(3) {
			for _, what := range []int{i, i + 16, i + 32} {
				f.Add(which, uint8(what), uint8(what%4), uint16(what%5)*7, value)
			}
		}
	}
	all := clouds()
	var acts [][]act
	f.Fuzz(func(t *testing.T, which, what, nth uint8, part uint16, value string) {
		if acts == nil {
			for _, c := range all {
				acts = append(acts, c.acts(t))
			}
		}
		c := all[int(which)%len(all)]
		of := acts[int(which)%len(all)]
		a := of[int(what)%len(of)]
		problems, _ := c.suffer(t, a, int(nth%mostCalls)+1, replaced(int(part), value))
		for _, problem := range problems {
			t.Errorf("%s: %s", a.name, problem)
		}
	})
}

// replaced is a good body whose nth part is another text, which may be no JSON.
func replaced(nth int, value string) hostile {
	return func(good *http.Response, body []byte) (*http.Response, error) {
		tree := decoded(string(body))
		if tree == nil {
			return with(good, strings.NewReader(value)), nil
		}
		var out bytes.Buffer
		left := nth % partsOf(tree)
		write(&out, tree, &left, value)
		return with(good, &out), nil
	}
}

// partsOf is how many parts a tree has, itself included.
func partsOf(tree any) int {
	parts := 1
	switch x := tree.(type) {
	case map[string]any:
		for _, v := range x {
			parts += partsOf(v)
		}
	case []any:
		for _, v := range x {
			parts += partsOf(v)
		}
	}
	return parts
}

// write writes a tree as JSON, with another text in place of the part at which left is 0.
func write(out *bytes.Buffer, tree any, left *int, value string) {
	if *left--; *left == -1 {
		out.WriteString(value)
		return
	}
	switch x := tree.(type) {
	case map[string]any:
		before := "{"
		for _, name := range slices.Sorted(maps.Keys(x)) {
			out.WriteString(before)
			out.Write(encoded(name))
			out.WriteByte(':')
			write(out, x[name], left, value)
			before = ","
		}
		if len(x) == 0 {
			out.WriteByte('{')
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i := range x {
			if i > 0 {
				out.WriteByte(',')
			}
			write(out, x[i], left, value)
		}
		out.WriteByte(']')
	case json.Number:
		out.WriteString(string(x))
	default:
		out.Write(encoded(x))
	}
}
