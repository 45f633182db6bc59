// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package proxmox is the Proxmox VE backend: QEMU VMs, cloned from templates on a
// cluster of one's own.
//
// It speaks to the API by a thin layer of its own on net/http (request.go), not by
// go-proxmox, since that library's request primitive can't be made safe: it takes an
// answer without the API's envelope for the value itself, so a page of a proxy reads
// as an empty list; it drops the status of an answer that can't be decoded; it
// prints bodies, with user data and keys in them, on its debug level; and it sends
// JSON, where Proxmox VE documents and exercises forms. What is left of it for the
// sixteen calls needed here is less than it brings along.
//
// Five rules shape the package.
//
//   - A key is hashed to a VMID (slots.go), and the cluster lets one clone through
//     per VMID: so two runs that make one key meet, and none makes a second VM.
//   - A VM is ours by what is written on it, never by its VMID: by our tags with the
//     expected key, or, while it is half made, by our line in its description
//     (marks.go). Both hold the VMID, so that a copy made by hand is nobody's.
//   - The tag better-compute comes last: without it the VM is half made.
//   - What takes long is a task, and most that goes wrong shows in its exit status;
//     a task that could not get a lock is asked for again (task.go).
//   - Whether a VM exists, only /cluster/resources tells: permissions are checked
//     before existence, and a VM that moved is "missing" on its old node.
//
// Sources: the published description of the API of Proxmox VE 9.2, and the source
// of its packages qemu-server, pve-manager and pve-http-server.
package proxmox

import (
	"net/http"
	"net/url"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// ID is the definition's id.
const ID = "proxmox"

// attribute is the cloud's attribute in accounts and instances.
const attribute = "proxmox"

// exampleURL is what an account's url looks like.
const exampleURL = "https://pve.example.com:8006"

// Options are what a program, not a user, chooses. The zero value is a real
// cluster.
type Options struct {
	// Transport carries the requests instead of one that follows the account's TLS
	// fields.
	Transport http.RoundTripper
}

// New is the definition of Proxmox VE.
func New(options Options) *backends.Definition {
	return &backends.Definition{
		ID:           ID,
		Title:        "Proxmox VE",
		Version:      "1.0.0",
		Provides:     []backends.Kind{backends.KindVPS},
		Description:  "Virtual machines on a Proxmox VE cluster of your own, cloned from templates.",
		Manifest:     backends.Manifest{Account: accountFields(), Machine: machineFields()},
		CheckAccount: checkAccount,
		Region:       func(config backends.Values) string { return config.String("region") },
		Moves:        movable(),
		Create: func(config backends.Values, env backends.Environment) (backends.Backend, error) {
			return newBackend(options, config, env)
		},
	}
}

func newBackend(options Options, config backends.Values, env backends.Environment) (backends.Backend, error) {
	endpoint, err := url.Parse(config.String("url"))
	if err != nil || checkURL(config.String("url")) != "" {
		// The text of err would repeat the value, which may hold a password.
		return nil, backends.Errorf(backends.InvalidConfig, "The account's url is not usable.").At(attribute, "url")
	}
	account, err := readSettings(config)
	if err != nil {
		return nil, err
	}
	transport := options.Transport
	if transport == nil {
		transport = env.Transport
	}
	if transport == nil {
		if transport, err = newTransport(endpoint, config, env.Secrets); err != nil {
			return nil, err
		}
	}
	authorized := backends.Authorize(backends.Logged(env.Wrapped(transport), env.Log), env.Secrets, config.String("token"), endpoint,
		func(credential string) (name, value string) { return "Authorization", "PVEAPIToken=" + credential })
	c := newClient(endpoint, authorized, env.UserAgent, account)
	if account.snippets == nil {
		return c, nil
	}
	c.snippets = newSnippets(account.snippets, env.Secrets)
	return &withSnippets{c}, nil
}
