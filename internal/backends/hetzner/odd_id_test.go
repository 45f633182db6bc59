// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// oddIDs passes requests on and gives the first object of an answer to a POST
// another id.
type oddIDs struct {
	http.RoundTripper
	id    string
	posts int
}

var firstID = regexp.MustCompile(`"(server|action)":\s*\{[^{}]*?"id":\s*\d+`)

func (o *oddIDs) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := o.RoundTripper.RoundTrip(r)
	if err != nil || r.Method != http.MethodPost {
		return answer, err
	}
	o.posts++
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	body = firstID.ReplaceAllFunc(body, func(b []byte) []byte {
		return append(bytes.TrimRight(b, "0123456789"), o.id...)
	})
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer.Header.Del("Content-Length")
	return answer, err
}

// An answer whose object has no id that can be one is no answer: what was made is
// looked for, and nothing is recorded by such an id.
func TestIDsThatAreNone(t *testing.T) {
	for _, id := range []string{"0", "-7"} {
		synctest.Test(t, func(t *testing.T) {
			cloud := emulated.New(emulated.Options{})
			odd := &oddIDs{RoundTripper: emulator.Transport(cloud), id: id}
			c := clientOf(t, odd, &fixedSecrets{token: testToken})
			m, err := c.MakeMachine(t.Context(), testSpec())
			if e := wantError(t, err); !e.Ambiguous || m.ID != "" || odd.posts != 1 || len(cloud.Servers()) != 1 {
				t.Errorf("made with id %s: %+v, %+v after %d calls", id, m, e, odd.posts)
			}
			found, err := c.FindMachines(t.Context(), testSpec().Marks.Key)
			if err != nil || len(found) != 1 {
				t.Fatalf("found %v, %v", found, err)
			}
			if e := wantError(t, c.Protect(t.Context(), found[0], true)); !strings.Contains(e.Message, "can't be understood") {
				t.Errorf("an action with id %s: %v", id, e)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			const meta = `"meta":{"pagination":{"page":1,"per_page":50}}`
			list := clientOf(t, always(jsonAnswer(200, `{"servers":[{"id":`+id+`}],`+meta+`}`)), &fixedSecrets{token: testToken})
			if got, err := backends.ListAll(t.Context(), list.ListMachines, backends.Filter{Pool: "pool_x"}); got != nil || wantError(t, err).Code != backends.ProviderError {
				t.Errorf("listed with id %s: %v, %v", id, got, err)
			}
			images := clientOf(t, always(jsonAnswer(200, `{"images":[{"id":`+id+`,"name":"x","type":"system","status":"available"}],`+meta+`}`)), &fixedSecrets{token: testToken})
			if got, err := images.images.fetch(t.Context(), "x"); err == nil {
				t.Errorf("an image with id %s: %v", id, got)
			}
			server := `{"server":{"id":4711,"image":{"id":` + id + `},"private_net":[{"network":` + id + `,"ip":"10.0.0.2"}]}}`
			m, err := clientOf(t, always(jsonAnswer(200, server)), &fixedSecrets{token: testToken}).GetMachine(t.Context(), "4711")
			if err != nil || m.ImageID != "" || m.Network != "" {
				t.Errorf("parts with id %s: %+v, %v", id, m, err)
			}
		})
	}
}
