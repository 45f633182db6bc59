// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// TestSharesAreListedWholeHoweverTheAPIPages: the description says nothing of pages,
// nor of a total.
func TestSharesAreListedWholeHoweverTheAPIPages(t *testing.T) {
	const all = 5
	items := func(from, to int) string {
		var out []string
		for i := from; i < min(to, all); i++ {
			out = append(out, fmt.Sprintf(`{"id":"id-%d","name":"n"}`, i))
		}
		return `"shares":[` + strings.Join(out, ",") + `]`
	}
	for name, tt := range map[string]struct {
		page  func(number int) string
		calls int
	}{
		"one page with a total":    {func(int) string { return items(0, 9) + `,"meta":{"total":5,"page":1,"per_page":200}` }, 1},
		"small pages with a total": {func(n int) string { return items(2*n-2, 2*n) + `,"meta":{"total":5}` }, 3},
		"small pages without":      {func(n int) string { return items(2*n-2, 2*n) }, 4},
		"pages are ignored":        {func(int) string { return items(0, 9) }, 2},
		"a total that isn't":       {func(n int) string { return items(2*n-2, 2*n) + `,"meta":{},"links":null` }, 4},
		"a share went meanwhile": {func(n int) string {
			return items(2*n-2, 2*n) + `,"meta":{"total":6}`
		}, 4},
	} {
		s := &script{answer: func(r *http.Request, _ int) answer {
			number, _ := strconv.Atoi(r.URL.Query().Get("page"))
			return jsonAnswer(200, `{`+tt.page(number)+`}`)
		}}
		found, err := scripted(t, s).SharedVolumes().Named(t.Context(), "n")
		if err != nil || len(found) != all || len(s.requests) != tt.calls {
			t.Errorf("%s: %d shares in %d calls, %v", name, len(found), len(s.requests), err)
		}
	}
	for _, body := range []string{`{}`, `{"shares":null}`, `{"shares":[]}`, `{"meta":{"total":0}}`} {
		found, err := backends.ListAll(t.Context(), scripted(t, always(jsonAnswer(200, body))).SharedVolumes().List, backends.Filter{})
		if err != nil || len(found) != 0 {
			t.Errorf("%s: %v, %v", body, found, err)
		}
	}
	for _, body := range []string{`null`, `[]`, `{"message":"hello"}`, `{"shares":{}}`, `{"shares":[{"name":"n"}]}`, `{"shares":[],"meta":7}`, `<html>`, ``} {
		synctest.Test(t, func(t *testing.T) {
			found, err := backends.ListAll(t.Context(), scripted(t, always(jsonAnswer(200, body))).SharedVolumes().List, backends.Filter{})
			if err == nil {
				t.Errorf("%s reads as %v", body, found)
			}
		})
	}
	endless := &script{answer: func(r *http.Request, nth int) answer {
		return jsonAnswer(200, fmt.Sprintf(`{"snapshots":[{"id":"id-%d"}]}`, nth))
	}}
	if _, err := scripted(t, endless).SharedSnapshots().List(t.Context(), backends.Filter{}); err == nil || len(endless.requests) != maxPages {
		t.Errorf("after %d pages: %v", len(endless.requests), err)
	}
}
