// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package provider is the face that OpenTofu and Terraform see: schemas,
// validation, plans, state and diagnostics. It is the only package that imports
// the plugin framework; what happens to machines is internal/reconcile's, and
// what a cloud is able to do is internal/backends'.
//
// No cloud is named here. The attributes hetzner_cloud and the like, in accounts
// and instances, are made from the manifests of the registered definitions and
// read back by path into a plain tree ([backends.Values]), so that another cloud
// costs nothing in this package.
//
// Three rules hold for every resource (DESIGN.md §4 and §5). A name is known
// before the thing exists: ids and most uris stand in the first plan. What can be
// checked is checked when it is created or changes, and only then. And no error
// shows a secret: not in its text, and not by pointing at a line of configuration
// that the CLIs would print (see [attributePath]).
package provider
