// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package recording_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/conformance/recording"
)

const secret = "correct-horse/battery \"staple\""

type fixed struct{}

func (fixed) Resolve(context.Context, string) (string, error) { return secret, nil }
func (fixed) Forget(string)                                   {}

// answering answers each request with the next of some bodies.
type answering struct {
	t       *testing.T
	bodies  []string
	headers http.Header
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Conformance-Case") != "" {
		a.t.Error("the mark of the case was sent to the cloud")
	}
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
	}
	if len(a.bodies) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	body := a.bodies[0]
	a.bodies = a.bodies[1:]
	headers := a.headers.Clone()
	if headers == nil {
		headers = http.Header{}
	}
	headers.Set("Content-Type", "application/json")
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: headers, Body: io.NopCloser(strings.NewReader(body)), Request: r, ContentLength: int64(len(body)),
	}, nil
}

// call sends a request and returns the answer's body.
func call(t *testing.T, transport http.RoundTripper, method, url, body string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Header.Set("Cookie", "session="+secret)
	request.Header.Set("Content-Type", "application/json")
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(answer.Body)
	return string(text), errors.Join(err, answer.Body.Close())
}

func must(t *testing.T, transport http.RoundTripper, method, url, body string) string {
	t.Helper()
	text, err := call(t, transport, method, url, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return text
}

// record records some calls and returns the file.
func record(t *testing.T, base *answering, calls func(http.RoundTripper)) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cassette.yaml")
	recorder, err := recording.NewRecorder(file, base)
	if err != nil {
		t.Fatal(err)
	}
	if value, err := recorder.Secrets(fixed{}).Resolve(t.Context(), "env://X"); err != nil || value != secret {
		t.Fatalf("resolving: %q, %v", value, err)
	}
	calls(recorder)
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file was written before it was clean: %v", err)
	}
	if err := recorder.Save(); err != nil {
		t.Fatal(err)
	}
	return file
}

func play(t *testing.T, file string) *recording.Player {
	t.Helper()
	player, err := recording.NewPlayer(file)
	if err != nil {
		t.Fatal(err)
	}
	return player
}

func TestCredentialsAreRemoved(t *testing.T) {
	const answer = `{"root_password":"rosebud","echo":"it was correct-horse/battery \"staple\"","nested":[{"api_key":"abc123","access_token":"xyz789"}],"labels":{"better-compute.io/idempotency-key":"inst_1"}}`
	const body = `{"name":"a","user_data":"#cloud-config\npassword: swordfish","ssh_keys":["ssh-ed25519 AAAA me"]}`
	const url = "https://user:letmein@cloud.test/v1/servers?token=opensesame&name=a"
	base := &answering{t: t, bodies: []string{answer}, headers: http.Header{
		"Set-Cookie": {"sid=cookiemonster"}, "X-Secret-Debug": {"whatever"}, "X-Correlation-Id": {"corr-1"},
	}}
	file := record(t, base, func(r http.RoundTripper) {
		if got := must(t, r, http.MethodPost, url, body); got != answer {
			t.Errorf("while recording the client gets %s", got)
		}
	})
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, gone := range []string{
		"correct-horse", "rosebud", "abc123", "xyz789", "swordfish", "letmein", "opensesame", "cookiemonster", "whatever",
		"Authorization", "Cookie", "Bearer",
	} {
		if strings.Contains(text, gone) {
			t.Errorf("the recording holds %q:\n%s", gone, text)
		}
	}
	for _, kept := range []string{"inst_1", "corr-1", "ssh-ed25519", "name=a"} {
		if !strings.Contains(text, kept) {
			t.Errorf("the recording lacks %q:\n%s", kept, text)
		}
	}
	// What was removed doesn't count when a request is matched; what wasn't does.
	again := strings.ReplaceAll(body, "swordfish", "another")
	if got := must(t, play(t, file), http.MethodPost, "https://cloud.test/v1/servers?name=a&token=another", again); !strings.Contains(got, `"REMOVED"`) {
		t.Errorf("the replay answers %s", got)
	}
	if _, err := call(t, play(t, file), http.MethodPost, url, strings.Replace(body, `"a"`, `"b"`, 1)); err == nil {
		t.Error("the replay answers a request with another name")
	}
}

func TestReplayFollowsTheRecording(t *testing.T) {
	const url = "https://cloud.test/v1/servers"
	base := &answering{t: t, bodies: []string{`"empty"`, `"made"`, `"starting"`, `"running"`, `"deleted"`, `"empty again"`}}
	file := record(t, base, func(r http.RoundTripper) {
		must(t, r, http.MethodGet, url, "")
		must(t, r, http.MethodPost, url, "")
		must(t, r, http.MethodGet, url, "")
		must(t, r, http.MethodGet, url, "")
		must(t, r, http.MethodDelete, url+"/1", "")
		must(t, r, http.MethodGet, url, "")
	})
	for name, steps := range map[string][][2]string{
		"as recorded": {{"GET", "empty"}, {"POST", "made"}, {"GET", "starting"}, {"GET", "running"}, {"DELETE", "deleted"}, {"GET", "empty again"}},
		"more polls":  {{"GET", "empty"}, {"GET", "empty"}, {"POST", "made"}, {"GET", "starting"}, {"GET", "running"}, {"GET", "running"}, {"DELETE", "deleted"}, {"GET", "empty again"}, {"GET", "empty again"}},
		"fewer polls": {{"POST", "made"}, {"GET", "starting"}, {"DELETE", "deleted"}, {"GET", "empty again"}},
	} {
		t.Run(name, func(t *testing.T) {
			player := play(t, file)
			for i, step := range steps {
				address := url
				if step[0] == http.MethodDelete {
					address += "/1"
				}
				if got := must(t, player, step[0], address, ""); got != `"`+step[1]+`"` {
					t.Errorf("step %d, %s: %s; want %q", i, step[0], got, step[1])
				}
			}
		})
	}
	player := play(t, file)
	must(t, player, http.MethodPost, url, "")
	if _, err := call(t, player, http.MethodPost, url, ""); !backends.HasCode(err, backends.ProviderError) {
		t.Errorf("a change that was made once is answered twice: %v", err)
	} else if e := backends.AsError(err); e.Ambiguous || e.Retryable {
		t.Error("a missing recording would be waited for")
	}
}

func TestUnansweredRequestsAreCounted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cassette.yaml")
	recorder, err := recording.NewRecorder(file, &answering{t: t})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, recorder, http.MethodGet, "https://cloud.test/", ""); err == nil {
		t.Error("a lost answer is no error")
	}
	if n := recorder.Unanswered(); n != 1 {
		t.Errorf("%d requests are counted as unanswered", n)
	}
}

func TestFileProblems(t *testing.T) {
	if _, err := recording.NewRecorder(filepath.Join(t.TempDir(), "missing", "x.yaml"), nil); err == nil {
		t.Error("a file that can't be written is found out too late")
	}
	if _, err := recording.NewPlayer(filepath.Join(t.TempDir(), "x.yaml")); err == nil {
		t.Error("a missing recording is played")
	}
	junk := filepath.Join(t.TempDir(), "junk.yaml")
	if err := os.WriteFile(junk, []byte("- not a cassette"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := recording.NewPlayer(junk); err == nil {
		t.Error("a file that is no recording is played")
	}
}
