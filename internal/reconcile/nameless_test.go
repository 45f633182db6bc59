// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// namelessCloud refuses a name without saying who has it, as one does whose lists don't
// show the holder yet.
type namelessCloud struct{ *cloud }

func (c namelessCloud) MakeMachine(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
	m, err := c.cloud.MakeMachine(ctx, spec)
	if _, taken := errors.AsType[*backends.NameTaken](err); taken {
		return m, &backends.NameTaken{Refusal: backends.Errorf(backends.ProviderError, "The name is taken.")}
	}
	return m, err
}

// TestNameWithoutAHolderIsWaitedFor: it may be ours, made by a run whose answer was lost
// and which no list shows yet.
func TestNameWithoutAHolderIsWaitedFor(t *testing.T) {
	for name, test := range map[string]struct {
		hidden time.Duration
		want   func(*ExistsError, *backends.Error) bool
	}{
		"it shows": {hidden: 5 * time.Second, want: func(exists *ExistsError, _ *backends.Error) bool { return exists != nil }},
		"it never shows": {hidden: time.Hour, want: func(exists *ExistsError, e *backends.Error) bool {
			return exists == nil && e != nil && e.Message == "The name is taken."
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				c.unique = true
				account, pool := openDisks(t, namelessCloud{c})
				marks := wish(pool, "web-0").Spec.Marks
				marks.Complete = true
				c.put(backends.Machine{Name: "web-0", Marks: marks})
				c.hidden = true
				hidden := time.AfterFunc(test.hidden, func() {
					c.mu.Lock()
					defer c.mu.Unlock()
					c.hidden = false
				})
				defer hidden.Stop()
				begun := time.Now()
				_, err := account.Create(t.Context(), wish(pool, "web-0"))
				exists, _ := errors.AsType[*ExistsError](err)
				if !test.want(exists, backends.AsError(err)) {
					t.Errorf("got %v", err)
				}
				if took := time.Since(begun); took < 5*time.Second || took > time.Minute {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
