// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

func TestReinstall(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	m := made(t, c, func(s *backends.MachineSpec) { s.UserData = "#!/bin/sh\necho old" })
	spec := testSpec()
	spec.Image, spec.UserData = "debian-13", "#!/bin/sh\necho new"
	if err := c.Reinstall(t.Context(), m, spec); err != nil {
		t.Fatal(err)
	}
	if s := cloud.Servers()[0]; s.Image != 310557660 || s.UserData != "#!/bin/sh\necho old" {
		t.Errorf("got %+v", s)
	}
	if err := c.ReinstallWithUserData(t.Context(), m, spec); err != nil {
		t.Fatal(err)
	}
	if s := cloud.Servers()[0]; s.UserData != spec.UserData {
		t.Errorf("got %+v", s)
	}
	spec.Image = "nope"
	if e := wantError(t, c.Reinstall(t.Context(), m, spec)); e.Path.String() != "image" {
		t.Errorf("got %v", e)
	}
	spec.UserData = strings.Repeat("x", 33<<10)
	if e := wantError(t, c.ReinstallWithUserData(t.Context(), m, spec)); e.Code != backends.InvalidInput || e.Path != nil {
		t.Errorf("got %v", e)
	}
}

func TestReinstallOfATypeNoLongerSold(t *testing.T) {
	cloud := emulated.New(emulated.Options{})
	m := made(t, clientOf(t, emulator.Transport(cloud), &fixedSecrets{token: testToken}), func(s *backends.MachineSpec) { s.Offer = "cax11" })
	if !cloud.Withdraw("cax11") {
		t.Fatal("cax11 is not in the catalog")
	}
	c := clientOf(t, emulator.Transport(cloud), &fixedSecrets{token: testToken})
	spec := testSpec()
	spec.Image = "debian-13"
	if err := c.Reinstall(t.Context(), m, spec); err != nil {
		t.Fatal(err)
	}
	if got := cloud.Servers()[0].Image; got != 310557661 {
		t.Errorf("image %d is not the one for arm", got)
	}
}

// An answer that is lost leaves open whether the rebuild was begun. It is looked
// for, whether it still runs or has ended, and begun anew only when there is none.
func TestLostReinstallIsNotStartedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		boot   time.Duration
		before int // reinstallations of an earlier day
		reach  bool
		then   int // the status of the next try after the lost one; 0: as the cloud answers
		want   int // requests to rebuild
	}{
		"still runs":          {boot: time.Minute, reach: true, want: 1},
		"has ended":           {reach: true, want: 1},
		"never arrived":       {want: 2},
		"only earlier ones":   {before: 2, want: 2},
		"ended, after others": {before: 2, reach: true, want: 1},
		"then a refusal":      {then: http.StatusConflict, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := emulated.New(emulated.Options{Boot: tt.boot})
				tries, begun, armed := 0, 0, false
				transport := roundTrip(func(r *http.Request) (*http.Response, error) {
					if !armed || !strings.HasSuffix(r.URL.Path, "/rebuild") {
						return emulator.Transport(cloud).RoundTrip(r)
					}
					tries++
					switch {
					case tries == 1 && !tt.reach:
						return nil, io.ErrUnexpectedEOF
					case tries == 2 && tt.then != 0:
						return always(jsonAnswer(tt.then, `{"error":{"code":"conflict","message":"the resource has changed"}}`)).RoundTrip(r)
					}
					a, err := emulator.Transport(cloud).RoundTrip(r)
					if err == nil && a.StatusCode == http.StatusCreated {
						begun++
						if tries == 1 {
							_ = a.Body.Close()
							return nil, io.ErrUnexpectedEOF
						}
					}
					return a, err
				})
				c := clientOf(t, transport, &fixedSecrets{token: testToken})
				m := made(t, c)
				time.Sleep(2 * time.Minute) // of the bubble's clock: the server boots
				for range tt.before {
					if err := c.Reinstall(t.Context(), m, testSpec()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Minute)
				}
				armed = true
				if err := c.Reinstall(t.Context(), m, testSpec()); err != nil {
					t.Fatal(err)
				}
				if tries != tt.want || begun != 1 {
					t.Errorf("%d requests, want %d; the disk was wiped %d times", tries, tt.want, begun)
				}
			})
		})
	}
}

// The server is locked by the rebuild whose answer was lost, so that the look-up
// shows nothing yet and the next try is refused: that is no leave to wipe twice.
func TestRefusalAfterALostReinstallSettlesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := emulated.New(emulated.Options{})
		tries, begun, armed := 0, 0, false
		hidden := false
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			switch {
			case !armed:
			case strings.HasSuffix(r.URL.Path, "/actions") && hidden:
				hidden = false // shown from the next look-up on
				return always(jsonAnswer(200, `{"actions":[],"meta":{"pagination":{"page":1,"per_page":50}}}`)).RoundTrip(r)
			case strings.HasSuffix(r.URL.Path, "/rebuild"):
				tries++
				if tries == 2 {
					return always(jsonAnswer(423, `{"error":{"code":"locked","message":"server is locked"}}`)).RoundTrip(r)
				}
				begun++
				a, err := emulator.Transport(cloud).RoundTrip(r)
				if tries == 1 && err == nil {
					_ = a.Body.Close()
					hidden = true
					return nil, io.ErrUnexpectedEOF
				}
				return a, err
			}
			return emulator.Transport(cloud).RoundTrip(r)
		})
		c := clientOf(t, transport, &fixedSecrets{token: testToken})
		m := made(t, c)
		armed = true
		if err := c.Reinstall(t.Context(), m, testSpec()); err != nil {
			t.Fatal(err)
		}
		if tries != 2 || begun != 1 {
			t.Errorf("%d requests; the disk was wiped %d times", tries, begun)
		}
	})
}
