// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"os"
	"testing"
)

// A level that the user chose stays.
func TestQuietSDK(t *testing.T) {
	t.Setenv(sdkLogVariable, "DEBUG")
	if err := quietSDK(); err != nil || os.Getenv(sdkLogVariable) != "DEBUG" {
		t.Errorf("the level became %q (%v)", os.Getenv(sdkLogVariable), err)
	}
	if err := os.Unsetenv(sdkLogVariable); err != nil { // t.Setenv puts it back
		t.Fatal(err)
	}
	if err := quietSDK(); err != nil || os.Getenv(sdkLogVariable) != "ERROR" {
		t.Errorf("the level became %q (%v)", os.Getenv(sdkLogVariable), err)
	}
}
