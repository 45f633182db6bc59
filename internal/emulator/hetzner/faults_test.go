// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

const newServer = `{"name":"a","server_type":"cx23","image":"debian-12"}`

// TestRefusals sets each fault that is an answer, and looks at that answer and
// at what has not happened.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		rule   emulator.Rule
		status int
		body   string
	}{
		{emulator.Rule{Kind: emulator.KindStatus}, 500, `"code":"server_error"`},
		{emulator.Rule{Kind: emulator.KindStatus, Status: 504}, 504, `"code":"timeout"`},
		{emulator.Rule{Kind: emulator.KindStatus, Status: 409}, 409, `"code":"conflict"`},
		{emulator.Rule{Kind: emulator.KindHTML}, 502, "<html>"},
		{emulator.Rule{Kind: emulator.KindRateLimitBurst}, 429, `"code":"rate_limit_exceeded"`},
		{emulator.Rule{Kind: emulator.KindRateLimitHour}, 429, `limit of 3600 requests per hour reached`},
		{emulator.Rule{Kind: emulator.KindLocked}, 423, `"code":"locked"`},
		{emulator.Rule{Kind: emulator.KindCapacity}, 412, `"code":"resource_unavailable"`},
	} {
		t.Run(string(test.rule.Kind), func(t *testing.T) {
			s := hetzner.New(hetzner.Options{})
			handler := described(t, s)
			test.rule.Method, test.rule.Path = "POST", "/v1/servers"
			addFault(t, s, test.rule)
			status, body, header := do(t, handler, "POST", "/v1/servers", newServer)
			if status != test.status || !strings.Contains(body, test.body) {
				t.Errorf("%d %s", status, body)
			}
			if status == 429 && (header.Get("RateLimit-Remaining") != "0" || header.Get("RateLimit-Reset") == "") {
				t.Errorf("headers %v", header)
			}
			if len(s.Servers()) != 0 {
				t.Error("the refused call had an effect")
			}
			if status, body, _ := do(t, handler, "POST", "/v1/servers", newServer); status != 201 {
				t.Errorf("after the fault: %d %s", status, body)
			}
		})
	}
}

func TestDroppedConnections(t *testing.T) {
	for kind, effect := range map[emulator.Kind]int{emulator.KindReset: 0, emulator.KindLoseAnswer: 1} {
		s := hetzner.New(hetzner.Options{})
		addFault(t, s, emulator.Rule{Method: "POST", Path: "*/servers", Kind: kind})
		if _, _, _, err := try(t.Context(), described(t, s), "POST", "/v1/servers", newServer); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s in memory: %v", kind, err)
		}
		if got := len(s.Servers()); got != effect {
			t.Errorf("%s: %d servers", kind, got)
		}
		if calls := s.Calls(); len(calls) != 1 || calls[0].Status != 0 {
			t.Errorf("%s: calls %v", kind, calls)
		}

		s = hetzner.New(hetzner.Options{})
		addFault(t, s, emulator.Rule{Method: "POST", Path: "*/servers", Kind: kind})
		client := serve(t, s)
		_, _, err := client.Server.Create(t.Context(), hcloud.ServerCreateOpts{
			Name: "a", ServerType: &hcloud.ServerType{Name: "cx23"}, Image: &hcloud.Image{Name: "debian-12"},
		})
		if err == nil || len(s.Servers()) != effect {
			t.Errorf("%s on a socket: %v, %d servers", kind, err, len(s.Servers()))
		}
	}
}

// TestDoneButReportedAsFailed: the effect happens, the answer says 504.
func TestDoneButReportedAsFailed(t *testing.T) {
	s := hetzner.New(hetzner.Options{})
	addFault(t, s, emulator.Rule{Method: "POST", Kind: emulator.KindLoseAnswer, Status: 504})
	if status, _, _ := do(t, s, "POST", "/v1/servers", newServer); status != 504 || len(s.Servers()) != 1 {
		t.Errorf("status %d, %d servers", status, len(s.Servers()))
	}
}

func TestFailedAction(t *testing.T) {
	s := hetzner.New(hetzner.Options{})
	addFault(t, s, emulator.Rule{Method: "POST", Path: "/servers", Kind: emulator.KindFailAction})
	client := serve(t, s, quick())
	created := must[hcloud.ServerCreateResult](t)(client.Server.Create(t.Context(), hcloud.ServerCreateOpts{
		Name: "a", ServerType: &hcloud.ServerType{Name: "cx23"}, Image: &hcloud.Image{Name: "debian-12"},
	}))
	err := client.Action.WaitFor(t.Context(), created.Action)
	var failed hcloud.ActionError
	if !errors.As(err, &failed) || failed.Code != "action_failed" {
		t.Errorf("waiting: %v", err)
	}
	if got := s.Servers(); len(got) != 1 || got[0].Status != "off" || got[0].Locked {
		t.Errorf("servers %+v", got)
	}
}

func TestHiddenFromLists(t *testing.T) {
	for _, method := range []string{"POST", "GET"} {
		synctest.Test(t, func(t *testing.T) {
			s := hetzner.New(hetzner.Options{})
			addFault(t, s, emulator.Rule{Method: method, Path: "/servers", Kind: emulator.KindHideFromLists, Delay: emulator.Duration(5 * time.Second), Times: emulator.Forever})
			_, body, _ := do(t, s, "POST", "/v1/servers", newServer)
			var created struct {
				Server struct {
					ID json.Number `json:"id"`
				} `json:"server"`
			}
			if err := json.Unmarshal([]byte(body), &created); err != nil {
				t.Fatal(err)
			}
			listed := func() bool {
				_, body, _ := do(t, s, "GET", "/v1/servers?name=a", "")
				return strings.Contains(body, `"name":"a"`)
			}
			if listed() {
				t.Errorf("%s rule: listed at once", method)
			}
			if status, _, _ := do(t, s, "GET", "/v1/servers/"+created.Server.ID.String(), ""); status != 200 {
				t.Errorf("%s rule: get by id says %d", method, status)
			}
			<-time.After(5 * time.Second)
			if !listed() {
				t.Errorf("%s rule: never listed", method)
			}
		})
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := hetzner.New(hetzner.Options{Latency: time.Second})
		addFault(t, s, emulator.Rule{Kind: emulator.KindDelay, Delay: emulator.Duration(time.Minute)})
		start := time.Now()
		do(t, s, "GET", "/v1/servers", "")
		if took := time.Since(start); took != time.Minute+time.Second {
			t.Errorf("took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, _, _, err := try(ctx, s, "GET", "/v1/servers", ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that timed out: %v", err)
		}
	})
}

func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := hetzner.New(hetzner.Options{})
		addFault(t, s, emulator.Rule{Method: "POST", Kind: emulator.KindHold, Times: 2})
		answered := make(chan int, 1)
		go func() {
			status, _, _, err := try(t.Context(), s, "POST", "/v1/servers", newServer)
			if err != nil {
				t.Error(err)
			}
			answered <- status
		}()
		synctest.Wait()
		if calls := s.Calls(); len(calls) != 1 || !calls[0].Held || calls[0].Status != 0 {
			t.Errorf("calls %+v", calls)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, _, err := try(ctx, s, "POST", "/v1/servers", newServer); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a held call whose client goes away: %v", err)
		}
		if len(s.Servers()) != 0 {
			t.Error("a held call had an effect")
		}
		s.ClearFaults()
		if status := <-answered; status != 201 {
			t.Errorf("let go: %d", status)
		}
		if calls := s.Calls(); calls[0].Held || calls[0].Status != 201 || calls[1].Held || calls[1].Status != 0 {
			t.Errorf("calls %+v", calls)
		}
	})
}

// TestTime watches a server's life by the clock, in a bubble and in memory.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := hetzner.New(hetzner.Options{Boot: 40 * time.Second, DeleteTime: 8 * time.Second})
		handler := described(t, s)
		client := hcloud.NewClient(hcloud.WithToken("x"), hcloud.WithEndpoint("http://hetzner.test/v1"),
			hcloud.WithHTTPClient(&http.Client{Transport: emulator.Transport(handler)}))
		start := time.Now()
		status := func(want string) {
			t.Helper()
			if got := s.Servers(); len(got) != 1 || got[0].Status != want {
				t.Errorf("after %v: %+v, want %s", time.Since(start), got, want)
			}
		}
		opts := hcloud.ServerCreateOpts{Name: "a", ServerType: &hcloud.ServerType{Name: "cx23"}, Image: &hcloud.Image{Name: "debian-12"}}
		created := must[hcloud.ServerCreateResult](t)(client.Server.Create(t.Context(), opts))
		server := created.Server
		status("initializing")
		if _, _, err := client.Server.Poweroff(t.Context(), server); !hcloud.IsError(err, hcloud.ErrorCodeLocked) {
			t.Errorf("poweroff while it is made: %v", err)
		}
		<-time.After(10 * time.Second)
		status("starting")
		wait(t, client, append(created.NextActions, created.Action)...)
		status("running")
		if took := time.Since(start); took < 40*time.Second || took > 41*time.Second {
			t.Errorf("running after %v", took)
		}

		action := must[*hcloud.Action](t)(client.Server.Shutdown(t.Context(), server))
		wait(t, client, action)
		status("running")
		<-time.After(20 * time.Second)
		status("off")

		deleted := must[*hcloud.ServerDeleteResult](t)(client.Server.DeleteWithResult(t.Context(), server))
		status("deleting")
		if _, _, err := client.Server.Create(t.Context(), opts); !hcloud.IsError(err, hcloud.ErrorCodeUniquenessError) {
			t.Errorf("the name while it is deleted: %v", err)
		}
		wait(t, client, deleted.Action)
		must[hcloud.ServerCreateResult](t)(client.Server.Create(t.Context(), opts))
	})
}
