// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// TestRefusals sets each fault that is an answer, and looks at that answer and
// at what has not happened.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		rule   emulator.Rule
		status int
		body   string
		retry  string
	}{
		{emulator.Rule{Kind: emulator.KindStatus}, 500, `"id":"server_error"`, ""},
		{emulator.Rule{Kind: emulator.KindStatus, Status: 504}, 504, `"id":"gateway_timeout"`, ""},
		{emulator.Rule{Kind: emulator.KindStatus, Status: 503}, 503, `"message":"Server Temporarily Unavailable"`, ""},
		{emulator.Rule{Kind: emulator.KindStatus, Status: 401}, 401, `"message":"Unable to authenticate you."`, ""},
		{emulator.Rule{Kind: emulator.KindStatus, Status: 429}, 429, `"message":"API rate limit exceeded."`, ""},
		{emulator.Rule{Kind: emulator.KindHTML}, 502, "<html>", ""},
		{emulator.Rule{Kind: emulator.KindRateLimitBurst}, 429, `"id":"too_many_requests"`, "1"},
		{emulator.Rule{Kind: emulator.KindRateLimitHour}, 429, `"id":"too_many_requests"`, ""},
		{emulator.Rule{Kind: emulator.KindRateLimitSnapshot}, 429, "one request per 10m0s", ""},
		{emulator.Rule{Kind: emulator.KindPendingEvent}, 422, "Droplet already has a pending event.", ""},
		{emulator.Rule{Kind: emulator.KindCapacity}, 422, "currently unavailable", ""},
	} {
		t.Run(fmt.Sprint(test.rule.Kind, test.rule.Status), func(t *testing.T) {
			s := digitalocean.New(digitalocean.Options{})
			handler := described(t, s)
			test.rule.Method, test.rule.Path = "POST", "/v2/droplets"
			addFault(t, s, test.rule)
			status, body, header := do(t, handler, "POST", "/v2/droplets", newDroplet)
			if status != test.status || !strings.Contains(body, test.body) || header.Get("Retry-After") != test.retry {
				t.Errorf("%d %s %v", status, body, header)
			}
			if test.rule.Kind == emulator.KindRateLimitHour && (header.Get("RateLimit-Remaining") != "0" || header.Get("RateLimit-Reset") == "") {
				t.Errorf("headers %v", header)
			}
			if test.rule.Kind != emulator.KindHTML {
				checkHeaders(t, status, body, header)
			}
			if len(s.Droplets()) != 0 || len(s.Tags()) != 0 {
				t.Error("the refused call had an effect")
			}
			if status, body, _ := do(t, handler, "POST", "/v2/droplets", newDroplet); status != 202 {
				t.Errorf("after the fault: %d %s", status, body)
			}
		})
	}
}

func TestDroppedConnections(t *testing.T) {
	for kind, effect := range map[emulator.Kind]int{emulator.KindReset: 0, emulator.KindLoseAnswer: 1} {
		s := digitalocean.New(digitalocean.Options{})
		addFault(t, s, emulator.Rule{Method: "POST", Path: "*/droplets", Kind: kind})
		if _, _, _, err := try(t.Context(), described(t, s), "POST", "/v2/droplets", newDroplet); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s in memory: %v", kind, err)
		}
		if got := len(s.Droplets()); got != effect {
			t.Errorf("%s: %d Droplets", kind, got)
		}
		if calls := s.Calls(); len(calls) != 1 || calls[0].Status != 0 {
			t.Errorf("%s: calls %v", kind, calls)
		}
	}
}

// TestRetriedCreation: godo as it comes repeats a POST whose answer was lost, and
// so makes a second Droplet. That is the client's doing, which the emulator must
// show.
func TestRetriedCreation(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	addFault(t, s, emulator.Rule{Method: "POST", Path: "/droplets", Kind: emulator.KindLoseAnswer})
	client := serve(t, s)
	made := must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), small("a")))
	if got := s.Droplets(); len(got) != 2 || got[1].ID != int64(made.ID) {
		t.Errorf("Droplets %+v", got)
	}
}

// TestDoneButReportedAsFailed: the effect happens, the answer says 504.
func TestDoneButReportedAsFailed(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	addFault(t, s, emulator.Rule{Method: "POST", Kind: emulator.KindLoseAnswer, Status: 504})
	if status, _, _ := do(t, s, "POST", "/v2/droplets", newDroplet); status != 504 || len(s.Droplets()) != 1 {
		t.Errorf("status %d, %d Droplets", status, len(s.Droplets()))
	}
}

func TestFailedActions(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	client := serve(t, s)
	addFault(t, s, emulator.Rule{Method: "POST", Path: "*", Kind: emulator.KindFailAction})
	_, response, err := client.Droplets.Create(t.Context(), small("a"))
	if err != nil {
		t.Fatal(err)
	}
	if action := must[*godo.Action](t)(client.Actions.Get(t.Context(), response.Links.Actions[0].ID)); action.Status != "errored" || action.CompletedAt == nil {
		t.Errorf("creation %+v", action)
	}
	if got := s.Droplets(); len(got) != 0 {
		t.Errorf("a Droplet that could not be placed is there: %+v", got)
	}
	d := must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), small("a")))
	addFault(t, s, emulator.Rule{Method: "POST", Path: "*", Kind: emulator.KindFailAction, Times: 2})
	for _, act := range []func(context.Context, int) (*godo.Action, *godo.Response, error){client.DropletActions.PowerOff, client.DropletActions.EnableIPv6} {
		if action := must[*godo.Action](t)(act(t.Context(), d.ID)); action.Status != "errored" {
			t.Errorf("action %+v", action)
		}
	}
	got := must[*godo.Droplet](t)(client.Droplets.Get(t.Context(), d.ID))
	if got.Status != "active" || len(got.Networks.V6) != 0 || got.Locked {
		t.Errorf("failed actions had an effect: %+v", got)
	}
	// A deletion that was accepted, and then nothing happens.
	addFault(t, s, emulator.Rule{Method: "DELETE", Kind: emulator.KindFailAction})
	done(t)(client.Droplets.Delete(t.Context(), d.ID))
	if len(s.Droplets()) != 1 {
		t.Error("the failed deletion deleted")
	}
}

// TestLag: hide-from-lists and early-404, set for creations and for reads.
func TestLag(t *testing.T) {
	for _, kind := range []emulator.Kind{emulator.KindHideFromLists, emulator.KindEarly404} {
		for _, method := range []string{"POST", "GET"} {
			synctest.Test(t, func(t *testing.T) {
				s := digitalocean.New(digitalocean.Options{})
				addFault(t, s, emulator.Rule{Method: method, Path: "/droplets*", Kind: kind, Delay: emulator.Duration(5 * time.Second), Times: emulator.Forever})
				_, body, _ := do(t, s, "POST", "/v2/droplets", newDroplet)
				var created struct {
					Droplet struct {
						ID json.Number `json:"id"`
					} `json:"droplet"`
				}
				if err := json.Unmarshal([]byte(body), &created); err != nil {
					t.Fatal(err)
				}
				one := "/v2/droplets/" + created.Droplet.ID.String()
				look := func(name string, listed bool, status int) {
					t.Helper()
					for _, query := range []string{"?name=a", "?tag_name=web", ""} {
						if _, body, _ := do(t, s, "GET", "/v2/droplets"+query, ""); strings.Contains(body, `"name":"a"`) != listed {
							t.Errorf("%s on %s, %s: listed %v with %q", kind, method, name, !listed, query)
						}
					}
					for _, path := range []string{one, one + "/actions", one + "/destroy_with_associated_resources"} {
						if got, _, _ := do(t, s, "GET", path, ""); got != status {
							t.Errorf("%s on %s, %s: get by id says %d", kind, method, name, got)
						}
					}
				}
				early := 200
				if kind == emulator.KindEarly404 {
					early = 404
				}
				look("at once", false, early)
				<-time.After(5 * time.Second)
				look("later", true, 200)
			})
		}
	}
}

func TestDelayAndHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := digitalocean.New(digitalocean.Options{Latency: time.Second})
		addFault(t, s, emulator.Rule{Kind: emulator.KindDelay, Delay: emulator.Duration(time.Minute)})
		start := time.Now()
		do(t, s, "GET", "/v2/droplets", "")
		if took := time.Since(start); took != time.Minute+time.Second {
			t.Errorf("took %v", took)
		}
		addFault(t, s, emulator.Rule{Method: "POST", Kind: emulator.KindHold})
		answered := make(chan int, 1)
		go func() {
			status, _, _, err := try(t.Context(), s, "POST", "/v2/droplets", newDroplet)
			if err != nil {
				t.Error(err)
			}
			answered <- status
		}()
		<-time.After(time.Hour)
		if calls := s.Calls(); len(calls) != 2 || !calls[1].Held || len(s.Droplets()) != 0 {
			t.Errorf("calls %+v", calls)
		}
		s.ClearFaults()
		if status := <-answered; status != 202 {
			t.Errorf("let go: %d", status)
		}
	})
}

// TestTime watches a Droplet's life by the clock, in a bubble and in memory.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := digitalocean.New(digitalocean.Options{Boot: 40 * time.Second, DeleteTime: 8 * time.Second, StatusLag: 3 * time.Second})
		handler := described(t, s)
		client := godo.NewClient(&http.Client{Transport: authorized{emulator.Transport(handler)}})
		start := time.Now()
		made, response, err := client.Droplets.Create(t.Context(), small("a"))
		if err != nil {
			t.Fatal(err)
		}
		look := func(status string, locked bool) {
			t.Helper()
			got := must[*godo.Droplet](t)(client.Droplets.Get(t.Context(), made.ID))
			if got.Status != status || got.Locked != locked {
				t.Errorf("after %v: %s, locked %v; want %s, %v", time.Since(start), got.Status, got.Locked, status, locked)
			}
		}
		action := func(id int, want string) {
			t.Helper()
			if got := must[*godo.Action](t)(client.Actions.Get(t.Context(), id)); got.Status != want || (got.CompletedAt != nil) != (want == "completed") {
				t.Errorf("after %v: action %+v, want %s", time.Since(start), got, want)
			}
		}
		creation := response.Links.Actions[0].ID
		if made.Status != "new" || !made.Locked || len(made.Networks.V4) != 0 {
			t.Errorf("made %+v", made)
		}
		_, _, err = client.DropletActions.PowerOff(t.Context(), made.ID)
		refusal(t, err, 422, "Droplet already has a pending event.")
		_, err = client.Droplets.Delete(t.Context(), made.ID)
		refusal(t, err, 422, "Droplet already has a pending event.")
		<-time.After(39 * time.Second)
		look("new", true)
		action(creation, "in-progress")
		// The action is completed before the status follows.
		<-time.After(time.Second)
		look("new", false)
		action(creation, "completed")
		<-time.After(3 * time.Second)
		look("active", false)

		asked := must[*godo.Action](t)(client.DropletActions.Shutdown(t.Context(), made.ID))
		<-time.After(13 * time.Second)
		action(asked.ID, "completed")
		look("active", false)
		<-time.After(8 * time.Second)
		look("off", false)
		on := must[*godo.Action](t)(client.DropletActions.PowerOn(t.Context(), made.ID))
		<-time.After(40 * time.Second)
		action(on.ID, "completed")
		look("off", false)
		<-time.After(3 * time.Second)
		look("active", false)

		// Whatever turns it off by force ends its own stopping.
		must[*godo.Action](t)(client.DropletActions.Shutdown(t.Context(), made.ID))
		<-time.After(13 * time.Second)
		must[*godo.Action](t)(client.DropletActions.PowerCycle(t.Context(), made.ID))
		<-time.After(10 * time.Second)
		look("active", true)
		<-time.After(2 * time.Minute)
		look("active", false)

		if !s.BeginEvent(int64(made.ID), 5*time.Second) {
			t.Error("no such Droplet")
		}
		_, err = client.Droplets.Delete(t.Context(), made.ID)
		refusal(t, err, 422, "pending event")
		<-time.After(5 * time.Second)
		done(t)(client.Droplets.Delete(t.Context(), made.ID))
		look("active", true)
		<-time.After(12 * time.Second)
		_, _, err = client.Droplets.Get(t.Context(), made.ID)
		refusal(t, err, 404, "")
	})
}

// TestDeafGuest: an option lets guests ignore the shutdown request.
func TestDeafGuest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := digitalocean.New(digitalocean.Options{Boot: time.Second, IgnoreShutdown: true})
		do(t, s, "POST", "/v2/droplets", newDroplet)
		<-time.After(time.Second)
		if status, body, _ := do(t, s, "POST", "/v2/droplets/400000001/actions", `{"type":"shutdown"}`); status != 201 {
			t.Fatalf("%d %s", status, body)
		}
		<-time.After(time.Hour)
		if got := s.Droplets(); got[0].Status != "active" || got[0].Locked {
			t.Errorf("%+v", got)
		}
	})
}

// authorized adds a token to every call.
type authorized struct{ http.RoundTripper }

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer token")
	return a.RoundTripper.RoundTrip(r)
}
