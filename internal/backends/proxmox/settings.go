// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// settings are an account's configuration, read.
type settings struct {
	region, node, pool, storage, disk string
	full                              bool
	vmidMin, vmidMax                  int
	offers                            []string // nil: any size
	snippets                          backends.Values
	poll, timeout                     time.Duration
}

// readSettings reads a configuration that holds defaults and was checked. It is
// checked again, since an account's uri may have been written by hand.
func readSettings(config backends.Values) (settings, error) {
	for _, issue := range append(backends.Validate(accountFields(), config, nil), checkAccount(config)...) {
		e := *issue
		e.Code = backends.InvalidConfig
		return settings{}, e.At(append(backends.Path{attribute}, issue.Path...)...)
	}
	poll, _ := time.ParseDuration(config.String("task_poll"))
	timeout, _ := time.ParseDuration(config.String("task_timeout"))
	return settings{
		region: config.String("region"), node: config.String("node"), pool: config.String("pool"),
		storage: config.String("storage"), disk: config.String("disk"), full: config.Bool("full_clone"),
		vmidMin: int(config.Int("vmid_min")), vmidMax: int(config.Int("vmid_max")),
		offers: config.Strings("offers"), snippets: config.Object("snippets"), poll: poll, timeout: timeout,
	}, nil
}

// checkAccount implements [backends.Definition.CheckAccount]: what excludes each
// other.
func checkAccount(config backends.Values) []*backends.Error {
	var issues []*backends.Error
	add := func(path backends.Path, remedy, format string, args ...any) {
		issues = append(issues, backends.Errorf(backends.InvalidInput, format, args...).At(path...).WithRemedy("%s", remedy))
	}
	if config.Has("vmid_min") && config.Has("vmid_max") && config.Int("vmid_min") > config.Int("vmid_max") {
		add(backends.Path{"vmid_max"}, "Set vmid_max to vmid_min or above.",
			"vmid_max (%d) is below vmid_min (%d).", config.Int("vmid_max"), config.Int("vmid_min"))
	}
	if config.Has("full_clone") && !config.Bool("full_clone") && config.Has("storage") {
		add(backends.Path{"storage"}, "Leave storage out, or set full_clone = true.",
			"A linked clone has its disks where the template has them, so it takes no storage.")
	}
	var ways []string
	for _, name := range []string{"ca_certificate", "tls_fingerprint"} {
		if config.Has(name) {
			ways = append(ways, name)
		}
	}
	if config.Bool("insecure") {
		ways = append(ways, "insecure")
	}
	if len(ways) > 1 {
		add(backends.Path{ways[1]}, "Keep the one that you mean.", "%s and %s exclude each other.", ways[0], ways[1])
	}
	if config.Has("offers") && len(config.List("offers")) == 0 {
		add(backends.Path{"offers"}, "Leave offers out to allow any size.", "An account without any offer can't make a machine.")
	}
	if snippets := config.Object("snippets"); snippets != nil {
		_, directory := snippets["directory"]
		_, sftp := snippets["sftp"]
		if directory == sftp {
			add(backends.Path{"snippets"}, "Set the one by which this machine reaches the storage.",
				"snippets needs exactly one of directory and sftp.")
		}
	}
	return issues
}
