// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// controls are characters that a terminal or a log obeys.
const controls = "a\nb\rc\x1b[31md\u009b2Je\u202ef\u2028g\x00h\u200bi"

// served is a client as backends have one, of a server that misbehaves.
func served(t *testing.T, handler http.HandlerFunc) (client *http.Client, base string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	endpoint, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	return NewClient(Authorize(transport, &fixedSecrets{value: "hunter2-hunter2"}, "env://T", endpoint,
		func(c string) (string, string) { return "Authorization", "Bearer " + c })), server.URL
}

func ask(t *testing.T, client *http.Client, target string) (*http.Response, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return answer, string(text), err
}

func TestCompressedAnswersAreBoundedAsTheyAreRead(t *testing.T) {
	client, base := served(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		zeros := make([]byte, 1<<20)
		for range 4 * MaxAnswer >> 20 {
			if _, err := packed.Write(zeros); err != nil {
				return // the client has seen enough
			}
		}
		_ = packed.Close()
	})
	_, text, err := ask(t, client, base)
	if !errors.Is(err, errTooLong) || len(text) > MaxAnswer+1 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestHeadersAreBounded(t *testing.T) {
	client, base := served(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 64 {
			w.Header().Set(fmt.Sprintf("X-Long-%d", i), strings.Repeat("x", maxHeaders/16))
		}
	})
	if _, _, err := ask(t, client, base); err == nil {
		t.Error("an answer with endless headers is taken")
	}
}

// A proxy that refuses a request may show it.
func TestCredentialIsNotRepeated(t *testing.T) {
	for _, status := range []int{200, 302, 401, 404, 502} {
		client, base := served(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Request-Id", r.Header.Get("Authorization"))
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.Repeat(" ", maxRefusal-12)+r.Header.Get("Authorization"))
		})
		answer, text, err := ask(t, client, base)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(answer.Header.Get("X-Request-Id"), "hunter2") || (status >= 300 && strings.Contains(text, "hunter2-h")) {
			t.Errorf("status %d: %q, %q", status, answer.Header, strings.TrimSpace(text))
		}
	}
}

// A key in PEM is a good secret, but no header.
func TestCredentialThatNoHeaderCarriesIsNotSent(t *testing.T) {
	endpoint, err := url.Parse("https://api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	client := NewClient(Authorize(roundTrip(func(*http.Request) (*http.Response, error) {
		t.Error("a request was sent")
		return nil, io.EOF
	}), &fixedSecrets{value: "-----BEGIN KEY-----\ns3cr3t\n"}, "env://T", endpoint, func(c string) (string, string) { return "Authorization", c }))
	_, _, err = ask(t, client, "https://api.example.com/v1")
	e := AsError(TransportError(t.Context(), "Acme", err))
	if e == nil || e.Code != InvalidConfig || e.Reason != ReasonSecret || e.Ambiguous || !strings.Contains(e.Message, "env://T") || strings.Contains(e.Error(), "s3cr3t") {
		t.Errorf("got %v", err)
	}
}

func TestWhatACloudSaysIsShownSafely(t *testing.T) {
	long := strings.Repeat("ä"+controls, 2000)
	e := Errorf(ProviderError, "%s", long).WithRemedy("one\ntwo\t%s", controls)
	for name, text := range map[string]string{
		"message": e.Error(), "printable": Printable(long), "one line": OneLine(controls + "\xff"), "choice": Choice([]string{controls, "b"}),
	} {
		if strings.ContainsFunc(text, obeyed) || !utf8.ValidString(text) {
			t.Errorf("%s: %.100q", name, text)
		}
	}
	if len(e.Message) > longestMessage+len("…") || len(Printable(long)) > LongestPrintable+len("…") {
		t.Errorf("a message of %d bytes, a name of %d", len(e.Message), len(Printable(long)))
	}
	if !strings.HasPrefix(e.Remedy, "one\ntwo\ta\nb c [31md 2Je f g h i") {
		t.Errorf("remedy %q", e.Remedy)
	}
	if got := OneLine("plain, ünïcode 漢字 🙂 %s"); got != "plain, ünïcode 漢字 🙂 %s" {
		t.Errorf("got %q", got)
	}
}

func TestPathsAreLoggedSafely(t *testing.T) {
	var lines []string
	log := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) { lines = append(lines, string(p)) }), &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if strings.ContainsFunc(a.Value.String(), obeyed) {
				t.Errorf("%s is logged as %q", a.Key, a.Value)
			}
			return a
		},
	}))
	client := NewClient(Logged(roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	}), log))
	if _, _, err := ask(t, client, "https://api.example.com/v1/"+url.PathEscape(controls)); err != nil || len(lines) != 1 {
		t.Errorf("%v, %q", err, lines)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

// A list of an API that went down isn't read to its end, page by page.
func TestPagedListOfADownAPIIsGivenUp(t *testing.T) {
	down := Errorf(ProviderError, "down")
	for name, test := range map[string]struct {
		page  func(number int) ([]int, error)
		calls int64
		want  error
	}{
		"all fail":       {func(int) ([]int, error) { return nil, down }, failedPages + pagesAtOnce, down},
		"one fails":      {func(n int) ([]int, error) { return []int{n}, map[bool]error{true: down}[n == 7] }, 999, down},
		"many on a page": {func(int) ([]int, error) { return make([]int, MaxObjects/2), nil }, 3 + pagesAtOnce, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			l := Paged([]int{1}, 1000, func(ctx context.Context, number int) ([]int, error) {
				calls.Add(1)
				if err := Sleep(ctx, time.Second); err != nil {
					return nil, err
				}
				return test.page(number)
			})
			_, err := l.All(t.Context())
			if err == nil || (test.want != nil && !errors.Is(err, test.want)) || calls.Load() > test.calls {
				t.Errorf("%s: %v after %d calls", name, err, calls.Load())
			}
		})
	}
}
