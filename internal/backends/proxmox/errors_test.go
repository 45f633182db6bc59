// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// TestRefusals reads both forms of an error: with its text in the body (since 8.4),
// and in the status line only.
func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		status    int
		message   string
		errs      string
		reason    backends.Reason
		retryable bool
		ambiguous bool
		remedy    string
	}{
		"permission":       {403, "Permission check failed (/vms/9000, VM.Clone)", "", backends.ReasonPermission, false, false, "VM.Clone on /vms/9000"},
		"one of two":       {403, "Permission check failed (/vms/1, VM.Monitor|VM.Audit)", "", backends.ReasonPermission, false, false, "VM.Monitor or VM.Audit on /vms/1"},
		"a tag":            {403, "Permission check failed (/, Sys.Modify for modifying tag 'better-compute')", "", backends.ReasonPermission, false, false, "Sys.Modify for modifying tag"},
		"lock":             {500, "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout", "", backends.ReasonLocked, true, false, "qm unlock"},
		"held":             {500, "VM is locked (backup)", "", backends.ReasonLocked, true, false, "qm unlock"},
		"worker":           {500, "got no worker upid - start worker failed", "", backends.ReasonLocked, true, false, ""},
		"quorum":           {500, "cluster not ready - no quorum?", "", "", true, false, "quorum"},
		"parameter":        {400, "Parameter verification failed.", `{"newid":"value must have a minimum value of 100"}`, backends.ReasonInvalid, false, false, ""},
		"taken":            {500, "unable to create VM 123: config file already exists", "", "", false, false, ""},
		"node":             {595, "No route to host", "", backends.ReasonUnreachable, false, true, "node is up"},
		"node, later":      {596, "Connection timed out", "", backends.ReasonUnreachable, false, true, ""},
		"node, aborted":    {599, "Too many redirections", "", backends.ReasonUnreachable, false, true, ""},
		"not implemented":  {501, "Method 'GET /x' not implemented", "", "", false, false, "url"},
		"nothing is said":  {500, "", "", "", false, true, ""},
		"a proxy's answer": {502, "", "", "", false, true, ""},
	} {
		for version, body := range map[string]string{
			"8": `{"data":null` + errorsField(test.errs) + `}`,
			"9": fmt.Sprintf(`{"data":null,"message":%q%s}`, test.message+"\n", errorsField(test.errs)),
		} {
			reason := test.message
			if version == "9" {
				reason = ""
			}
			e := wantError(t, refused("Reading VM 1", answer{test.status, reason, []byte(body)}))
			if e.Code != backends.ProviderError || e.Reason != test.reason || e.Retryable != test.retryable || e.Ambiguous != test.ambiguous ||
				!strings.Contains(e.Remedy, test.remedy) || e.Details["status"] != test.status {
				t.Errorf("%s (%s): %+v", name, version, e)
			}
			if !strings.Contains(e.Message, strings.TrimRight(test.message, ".")) {
				t.Errorf("%s (%s): %s", name, version, e.Message)
			}
			if test.errs != "" && !strings.Contains(e.Message, "newid: value must") {
				t.Errorf("%s (%s): %s", name, version, e.Message)
			}
		}
	}
}

func errorsField(errs string) string {
	if errs == "" {
		return ""
	}
	return `,"errors":` + errs
}

func TestUnauthorized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: func(*http.Request, string, int) scripted {
			return scripted{status: 401, reason: "Authentication failed!"}
		}}
		err := clientOf(t, s).Prove(t.Context())
		if e := wantCode(t, err, backends.ProviderError); e.Reason != backends.ReasonCredentials {
			t.Errorf("%+v", e)
		}
	})
}

// TestSpelling holds how requests are written.
func TestSpelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: func(r *http.Request, body string, _ int) scripted {
			if r.Header.Get("Authorization") != "PVEAPIToken="+testToken {
				t.Errorf("%v", r.Header)
			}
			bare := r.Method == http.MethodGet || r.Method == http.MethodDelete
			switch {
			case bare && (body != "" || r.ContentLength > 0 || r.Header.Get("Content-Type") != ""):
				t.Errorf("%s with a body %q", r.Method, body)
			case !bare && (r.ContentLength != int64(len(body)) || len(r.TransferEncoding) > 0 || r.URL.RawQuery != ""):
				t.Errorf("%s: %d of %q, %s", r.Method, r.ContentLength, body, r.URL.RawQuery)
			}
			return scripted{status: 200, body: `{"data":[]}`}
		}}
		c := clientOf(t, s)
		for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPost, http.MethodPut} {
			if err := c.tell(t.Context(), "x", request{method, "nodes", map[string][]string{"a": {"b c"}}}); err != nil {
				t.Error(err)
			}
		}
	})
	if got := at("nodes", "pve1", "tasks", "UPID:a:b!c:", "status"); got != "nodes/pve1/tasks/UPID:a:b%21c:/status" {
		t.Error(got)
	}
	if got := at("content", "local:snippets/../x y"); got != "content/local:snippets%2F..%2Fx%20y" {
		t.Error(got)
	}
}

// TestStrangeAnswers are failures, never empty lists or VMs that are gone.
func TestStrangeAnswers(t *testing.T) {
	for name, body := range map[string]string{
		"no envelope": `[]`, "no data": `{}`, "null": `{"data":null}`, "html": `<html>`, "nothing": ``,
		"a VM without an id": `{"data":[{"node":"pve1"}]}`, "another type": `{"data":{"x":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := clientOf(t, &script{answer: func(*http.Request, string, int) scripted { return scripted{status: 200, body: body} }})
				if all, err := c.guests.get(t.Context(), 0); err == nil {
					t.Errorf("%v", all)
				}
				_, err := c.GetMachine(t.Context(), "100")
				if e := wantCode(t, err, backends.ProviderError); !e.Ambiguous {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}

// TestSecretThatCantBeResolved keeps its error.
func TestSecretThatCantBeResolved(t *testing.T) {
	missing := backends.Errorf(backends.InvalidConfig, "There is no such secret.")
	b := backendOf(t, &script{}, &fixedSecrets{err: missing})
	if err := b.Prove(t.Context()); !errors.Is(err, missing) {
		t.Error(err)
	}
}

func TestUPID(t *testing.T) {
	u, ok := parseUPID("UPID:pve1:00001ED0:00035693:66343A23:qmclone:9000:bc@pve!tok:")
	if !ok || u.node != "pve1" || u.kind != "qmclone" || u.byHA() {
		t.Errorf("%+v, %v", u, ok)
	}
	if u, ok := parseUPID("UPID:n:00001ED0:000356931:66343A23:hastart:100:root@pam:"); !ok || !u.byHA() {
		t.Errorf("%+v, %v", u, ok)
	}
	for _, bad := range []string{"", "UPID:pve1", "null", "UPID:pve/1:00001ED0:00035693:66343A23:qmclone:9000:bc@pve:"} {
		if _, ok := parseUPID(bad); ok {
			t.Error(bad)
		}
	}
}

// TestRemedies are what a user is told to do about refusals that say little.
func TestRemedies(t *testing.T) {
	for name, test := range map[string]struct {
		answer       answer
		says, remedy string
		reason       backends.Reason
	}{
		"no such pool": {answer{403, "Permission check failed (pool 'nosuch' does not exist)", nil}, `there is no resource pool "nosuch"`, "proxmox.pool_id", backends.ReasonInvalid},
		"privilege":    {answer{403, "Permission check failed (/vms/9000, VM.Clone)", nil}, "VM.Clone", "VM.Clone on /vms/9000", backends.ReasonPermission},
		"storage":      {answer{500, "", []byte(`{"data":null,"message":"storage 'nosuch' does not exist\n"}`)}, "storage 'nosuch'", "account's storage", backends.ReasonInvalid},
		"plain HTTP":   {answer{400, "", []byte("Client sent an HTTP request to an HTTPS server.\n")}, "status 400", "https://", backends.ReasonInvalid},
		"a wrong word": {answer{400, "Parameter verification failed.", nil}, "Parameter verification failed.", "", backends.ReasonInvalid},
		"credentials":  {answer{401, "Authentication failed!", nil}, "x: Authentication failed.", "user@realm!name=secret", backends.ReasonCredentials},
	} {
		e := wantError(t, refused("x", test.answer))
		if !strings.Contains(e.Message, test.says) || !strings.Contains(e.Remedy, test.remedy) || (test.remedy == "") != (e.Remedy == "") || e.Reason != test.reason {
			t.Errorf("%s: %v %s (%s)", name, e, e.Remedy, e.Reason)
		}
		if strings.Contains(e.Message, "!.") || strings.Contains(e.Message, "..") {
			t.Errorf("%s: %s", name, e.Message)
		}
	}
	e := wantError(t, noAnswer(t.Context(), "x", errPin))
	if !strings.Contains(e.Remedy, "renewed") || e.Ambiguous {
		t.Errorf("%v %s", e, e.Remedy)
	}
}
