// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// shown is a diagnostic as one text: severity, path, summary, detail.
func shown(d diag.Diagnostic) string {
	at := ""
	if p, ok := d.(diag.DiagnosticWithPath); ok {
		at = p.Path().String()
	}
	return fmt.Sprintf("%s|%s|%s|%s", d.Severity(), at, d.Summary(), d.Detail())
}

func TestReport(t *testing.T) {
	long := strings.Repeat("word ", 40) + "end."
	detailed := backends.Errorf(backends.ProviderError, "Creating server web-0: no. Really.").WithRemedy("Wait.").At("hetzner_cloud", "networks", 0, "ip")
	detailed.Details = map[string]any{"status": 422, "correlation_id": "abc", "code": "invalid_input", "fields": []string{"a", "b"}, "empty": ""}
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"nil": {nil, nil},
		"short": {
			backends.Errorf(backends.InvalidInput, "Too short.").At("name"),
			[]string{"Error|name|INVALID_INPUT: Too short.|"},
		},
		"detailed": {detailed, []string{
			"Error|hetzner_cloud.networks[0].ip|PROVIDER_ERROR: Creating server web-0: no.|Really.\n\nWait.\n\n" +
				"(status: 422; code: invalid_input; correlation id: abc; fields: a, b)",
		}},
		"long": {backends.Errorf(backends.Conflict, "%s", long), []string{
			"Error||CONFLICT: " + strings.TrimSpace(strings.Repeat("word ", 22)) + "…|" + long,
		}},
		"wrapped keeps the code": {
			fmt.Errorf("outer: %w", backends.Errorf(backends.NotFound, "Gone.")),
			[]string{"Error||NOT_FOUND: Gone.|"},
		},
		"joined": {
			errors.Join(backends.Errorf(backends.InvalidInput, "A."), errors.Join(backends.Errorf(backends.InvalidInput, "B."), backends.Errorf(backends.InvalidInput, "A."))),
			[]string{"Error||INVALID_INPUT: A.|", "Error||INVALID_INPUT: B.|"},
		},
		"deadline": {fmt.Errorf("waiting: %w", context.DeadlineExceeded), []string{
			"Error||PROVIDER_ERROR: The operation took longer than its timeout.|Run again; if the cloud is that slow, raise the resource's `timeouts`.",
		}},
		"canceled": {context.Canceled, []string{
			"Error||PROVIDER_ERROR: The operation was interrupted.|Run again: it goes on where it ended.",
		}},
		"any other": {errors.New("odd"), []string{"Error||PROVIDER_ERROR: odd|"}},
	} {
		var diags diag.Diagnostics
		report(&diags, test.err)
		var got []string
		for _, d := range diags {
			got = append(got, shown(d))
		}
		if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, test.want)
		}
	}
}

// A summary is a whole sentence or a whole part of one, whatever the message.
func TestHeadline(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", 25))
	for message, want := range map[string]struct {
		line, detail string
	}{
		"A name is of letters, digits and . _ : - only.":  {"A name is of letters, digits and . _ : - only.", ""},
		"Letters and . _ - are good. Nothing else is.":    {"Letters and . _ - are good.", "Nothing else is."},
		"There are some, e.g. this one. That is all.":     {"There are some, e.g. this one.", "That is all."},
		"Umlauts begin words. Äpfel too.":                 {"Umlauts begin words.", "Äpfel too."},
		"Two.\nLines.":                                    {"Two.", "Lines."},
		"No end":                                          {"No end", ""},
		"":                                                {"", ""},
		"Creating server web-0: " + long + ".":            {"Creating server web-0", "Creating server web-0: " + long + "."},
		"It can't be replaced (for " + long + ").":        {"It can't be replaced.", "It can't be replaced (for " + long + ")."},
		`The machine "web: 0" (4711) runs; ` + long + ".": {`The machine "web: 0" (4711) runs`, `The machine "web: 0" (4711) runs; ` + long + "."},
		"Machines (ours: " + long + ") are left. More.":   {"Machines are left.", "Machines (ours: " + long + ") are left. More."},
		`The snapshot "a (b" (8656c8c9-5c7e-4809-9076-b96f105db3a9, here (and there)) was imported and never taken over, so it is not deleted.`: {
			`The snapshot "a (b" was imported and never taken over, so it is not deleted.`,
			`The snapshot "a (b" (8656c8c9-5c7e-4809-9076-b96f105db3a9, here (and there)) was imported and never taken over, so it is not deleted.`,
		},
		"pool: " + long + ".":   {"pool: " + strings.TrimSpace(strings.Repeat("word ", 20)) + "…", "pool: " + long + "."},
		strings.Repeat("ä", 80): {strings.Repeat("ä", 55) + "…", strings.Repeat("ä", 80)},
	} {
		d := describe(backends.Errorf(backends.Conflict, "%s", message))
		if got := d.summary(); got != "CONFLICT: "+want.line || d.detail() != want.detail {
			t.Errorf("%q:\nsummary %q, detail %q\nwant    %q, detail %q", message, got, d.detail(), want.line, want.detail)
		}
	}
}

// The contract's error of a taken name is one with a code.
func TestReportOfATakenName(t *testing.T) {
	var diags diag.Diagnostics
	report(&diags, fmt.Errorf("making: %w", &backends.NameTaken{Holder: backends.Machine{ID: "7", Name: "web"}.About()}))
	if got := shown(diags[0]); len(diags) != 1 || !strings.HasPrefix(got, `Error||CONFLICT: The name "web" is taken`) {
		t.Errorf("got %s", got)
	}
}

func TestWarn(t *testing.T) {
	var diags diag.Diagnostics
	warn(&diags, nil, "Nothing.", "")
	warn(&diags, backends.Errorf(backends.InvalidConfig, "No token.").WithRemedy("Export it."), "Not checked.", "More.")
	if len(diags) != 1 || shown(diags[0]) != "Warning||INVALID_CONFIG: Not checked.|No token.\n\nExport it.\n\nMore." {
		t.Errorf("got %v", diags)
	}
}

// What follows from an error is said once, however many errors were joined, and a
// code stands only before what has one.
func TestWarnOnceAndWithItsOwnCode(t *testing.T) {
	limited := backends.Errorf(backends.RateLimited, "Too many requests.").At("name")
	for want, err := range map[string]error{
		"Warning||Interrupted|The operation was interrupted.\n\nRun again: it goes on where it ended.\n\nMore.":                                         context.Canceled,
		"Warning|name|RATE_LIMITED: Interrupted|Too many requests.\n\nThe operation was interrupted.\n\nRun again: it goes on where it ended.\n\nMore.": errors.Join(limited, context.Canceled),
		"Warning|name|RATE_LIMITED: Interrupted|odd\n\nToo many requests.\n\nMore.":                                                                     errors.Join(errors.New("odd"), limited),
	} {
		var diags diag.Diagnostics
		warn(&diags, err, "Interrupted", "More.")
		if len(diags) != 1 || shown(diags[0]) != want {
			t.Errorf("got %q, want %q", diags, want)
		}
	}
}

func TestReportWithSaysMoreOnce(t *testing.T) {
	var diags diag.Diagnostics
	reportWith(&diags, errors.Join(backends.Errorf(backends.RateLimited, "Too many requests."), context.Canceled), "Nothing is recorded.")
	if len(diags) != 2 || strings.Contains(diags[0].Detail(), "recorded") || !strings.HasSuffix(diags[1].Detail(), "\n\nNothing is recorded.") {
		t.Errorf("got %v", diags)
	}
	diags = nil
	reportWith(&diags, nil, "Nothing is recorded.")
	if len(diags) != 0 {
		t.Errorf("got %v", diags)
	}
}

func TestNoUserinfoOfAnErrorThatIsNotOurs(t *testing.T) {
	var diags diag.Diagnostics
	report(&diags, errors.New(`dial "https://user:s3cr3t@host/"`))
	if got := shown(diags[0]); strings.Contains(got, "s3cr3t") {
		t.Error(got)
	}
}

// The CLIs print the source lines of what an error points at, so no error points
// at an attribute that may hold a secret on the same lines.
func TestNoErrorPointsAtASecret(t *testing.T) {
	for _, p := range []backends.Path{
		{"secrets"}, {"vault"}, {"user_data"}, {"user_data_wo"}, {"hetzner_cloud"}, {"digitalocean"}, {"proxmox"}, {"any_future_cloud"}, {"pool"}, {"provider_account"}, {}, {3},
	} {
		if got := attributePath(p); len(got.Steps()) != 0 {
			t.Errorf("%v points at %s", p, got)
		}
	}
	for want, p := range map[string]backends.Path{
		"name":                       {"name"},
		"hetzner_cloud.token":        {"hetzner_cloud", "token"},
		"vault.token":                {"vault", "token"},
		`flavors["a-b"]`:             {"flavors", "a-b"},
		`labels["a/b"]`:              {"labels", "a/b"},
		"ssh_keys[2]":                {"ssh_keys", 2},
		"limits.instances":           {"limits", "instances"},
		"proxmox.snippets.sftp.host": {"proxmox", "snippets", "sftp", "host"},
	} {
		if got := attributePath(p).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestUrisWithSecretsArePointedAtByWordsOnly(t *testing.T) {
	for text, points := range map[string]string{
		"main": "pool", "pacct_0123": "pool", "hetzner-clout://root/main": "pool",
		"hetzner-cloud://root/main?token=literal":     "",
		"hetzner-cloud://user:password@root/main/web": "",
	} {
		var diags diag.Diagnostics
		report(&diags, inAttribute("pool", text, backends.Errorf(backends.InvalidInput, "Bad.").At("elsewhere")))
		if got, want := shown(diags[0]), "Error|"+points+"|INVALID_INPUT: pool: Bad.|"; got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
