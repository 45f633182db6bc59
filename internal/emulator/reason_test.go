// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// complainer is a service that says in its status line why.
type complainer struct{ notesBackend }

func (complainer) Serve(w http.ResponseWriter, _ *http.Request) {
	emulator.SetReason(w, "no such\r\nthing")
	w.Header().Set("X-Kind", "refusal")
	w.WriteHeader(595)
	_, _ = io.WriteString(w, "why")
}

// TestReason: it arrives over a socket, in memory, and not at all where there is no
// status line, with the rest of the answer.
func TestReason(t *testing.T) {
	front := emulator.NewFront(complainer{}, 0)
	server := httptest.NewServer(front)
	defer server.Close()
	for name, transport := range map[string]http.RoundTripper{"socket": server.Client().Transport, "memory": emulator.Transport(front)} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/x", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := io.ReadAll(response.Body)
		if err != nil || response.Status != "595 no such  thing" || response.StatusCode != 595 || string(text) != "why" || response.Header.Get("X-Kind") != "refusal" {
			t.Errorf("%s: %s %s %v %v", name, response.Status, text, response.Header, err)
		}
		if name == "socket" && !response.Close {
			t.Error("the connection stays open")
		}
	}
	recorder := httptest.NewRecorder()
	front.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/api/x", http.NoBody))
	if recorder.Code != 595 || recorder.Body.String() != "why" {
		t.Errorf("recorded %d %s", recorder.Code, recorder.Body)
	}
	emulator.SetReason(recorder, "ignored")
}

// TestProjectTokens: a token may have equals signs in it.
func TestProjectTokens(t *testing.T) {
	p := emulator.Projects{}
	for _, text := range []string{"plain=one", "root@pam!x=secret=two"} {
		if err := p.Set(text); err != nil {
			t.Error(err)
		}
	}
	for token, want := range map[string]string{"plain": "one", "root@pam!x=secret": "two", "root@pam!x": ""} {
		if got, _ := p.Find(token); got != want {
			t.Errorf("%s sees %q, want %q", token, got, want)
		}
	}
	for _, text := range []string{"x", "=x", "x="} {
		if err := p.Set(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
