// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"testing"
	"testing/synctest"
)

// A null in a list that godo reads into pointers.
func TestShareOptionsWithNulls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := scripted(t, always(jsonAnswer(200, `{"performance_tiers":[null],"supported_regions":["nyc2"]}`)))
		if _, err := (shares{c}).fetchOptions(t.Context()); err == nil {
			t.Error("a null passes for a tier")
		}
	})
}

// An id becomes part of paths and messages.
func TestObjectsWithOddIDsAreNotTaken(t *testing.T) {
	for _, id := range []string{"", "..", "a/b", "a b", "a\\n", "\\u001b[31m", "%2e%2e", "a?b"} {
		synctest.Test(t, func(t *testing.T) {
			c := scripted(t, always(jsonAnswer(200, `{"volumes":[{"id":"`+id+`","name":"x"}],"meta":{"total":1}}`)))
			if found, err := c.Volumes().Named(t.Context(), "x"); err == nil {
				t.Errorf("%q: %v", id, found)
			}
		})
	}
}
