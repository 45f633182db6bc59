// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/provider"
)

// A cloud's attribute stands beside the resources' own.
func TestCloudsDontTakeAttributes(t *testing.T) {
	for id, good := range map[string]bool{
		"other-cloud": true,
		"uri":         false, "tenant-id": false, "capabilities": false, // an account's
		"limits": false, "provider-account": false, // a pool's
		"timeouts": false, "user-data": false, "private-ipv4": false, // an instance's
		"provider": false, "for-each": false, "lifecycle": false, // the cores'
	} {
		d := otherCloud()
		d.ID = id
		clouds, err := backends.NewRegistry(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := provider.NewWith(provider.Options{Registry: clouds}); (err == nil) != good || (err != nil && !backends.HasCode(err, backends.InvalidConfig)) {
			t.Errorf("%s: %v", id, err)
		}
	}
}
