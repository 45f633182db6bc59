// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"os"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
)

// Address is the provider's in Terraform's registry; OpenTofu's has the same
// namespace and type.
const Address = "registry.terraform.io/better-compute/bettercompute"

// sdkLogVariable sets the level of the plugin SDK's own log.
const sdkLogVariable = "TF_LOG_SDK"

// Serve is the plugin that OpenTofu and Terraform start, until they end it; with
// debug it serves for a debugger and prints how to reattach. Started by hand it
// says what it is and ends the process.
func Serve(version string, debug bool) error {
	if err := quietSDK(); err != nil {
		return err
	}
	newProvider, err := New(version)
	if err != nil {
		return err
	}
	var options []tf6server.ServeOpt
	if debug {
		options = append(options, tf6server.WithManagedDebug())
	}
	return tf6server.Serve(Address, func() tfprotov6.ProviderServer { return ProtocolServer(newProvider()) }, options...)
}

// quietSDK keeps the plugin SDK from logging every call at TRACE, which costs 20
// to 40 % of a large plan, unless the user asked for a level.
func quietSDK() error {
	if _, set := os.LookupEnv(sdkLogVariable); set {
		return nil
	}
	return os.Setenv(sdkLogVariable, "ERROR")
}
