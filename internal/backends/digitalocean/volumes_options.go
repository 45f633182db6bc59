// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"regexp"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The performance tiers of shares (OpenAPI, nfs_create).
const (
	tierStandard = "standard"
	tierHigh     = "high"
)

// volumeFields are the options of volumes of both kinds; which are of which is
// checked by the kinds.
func volumeFields(tagPrefix string) []backends.Field {
	return []backends.Field{
		{
			Name: "tags", Type: backends.TypeStringSet, Check: stringCheck(func(tag string) string { return checkTag(tag, tagPrefix) }),
			Description: "Raw tags of a block volume besides those of `labels`. DigitalOcean ignores their case.",
		},
		{
			Name: "filesystem_label", Type: backends.TypeString,
			Description: "The label of a block volume's filesystem: at most 16 characters on ext4, 12 on xfs. A volume from a snapshot keeps the snapshot's.",
		},
		{
			Name: "performance_tier", Type: backends.TypeString, Options: []string{tierStandard, tierHigh},
			Description: "The performance tier of a shared volume, when it is made; unset: standard. The tiers have sizes of their own.",
		},
	}
}

// notOf reports options that are set and belong to the other kind of volumes.
func notOf(kind string, options backends.Values, names ...string) []*backends.Error {
	var issues []*backends.Error
	for _, name := range names {
		if options.Has(name) {
			issues = append(issues, backends.Errorf(backends.InvalidInput, "%s is not for %s volumes.", name, kind).At(attribute, name))
		}
	}
	return issues
}

// labelLimits are how many characters a filesystem's label may have.
var labelLimits = map[string]int{"ext4": 16, "xfs": 12}

func checkFilesystem(spec backends.VolumeSpec) []*backends.Error {
	var issues []*backends.Error
	filesystem := formatted(spec.Filesystem)
	most, known := labelLimits[filesystem]
	if filesystem != "" && !known {
		return append(issues, backends.Errorf(backends.InvalidInput, "There is no filesystem %q.", spec.Filesystem).At("filesystem").
			WithRemedy("Use ext4, xfs or none."))
	}
	label := spec.Options.String("filesystem_label")
	switch {
	case label == "" || !spec.Knows("filesystem"):
	case filesystem == "":
		issues = append(issues, backends.Errorf(backends.InvalidInput, "A volume without a filesystem has no filesystem_label.").
			At(attribute, "filesystem_label").WithRemedy("Set filesystem to ext4 or xfs."))
	case len(label) > most:
		issues = append(issues, backends.Errorf(backends.InvalidInput, "The filesystem_label is too long: %s takes %d characters.",
			filesystem, most).At(attribute, "filesystem_label"))
	}
	return issues
}

// formatted is the filesystem that the cloud is to make; "" for none.
func formatted(filesystem string) string {
	if filesystem == "none" {
		return ""
	}
	return filesystem
}

// sizeIssue is a size that the cloud doesn't make.
func sizeIssue(format string, args ...any) *backends.Error {
	e := backends.Errorf(backends.InvalidInput, "%s", fmt.Sprintf(format, args...)).At("size_gib")
	e.Reason = backends.ReasonSize
	return e
}

// mayUse tells whether a region is the account's, or isn't known yet.
func (c *Client) mayUse(region string) bool {
	return region == "" || (&catalog{allowed: c.regions}).allows(region)
}

// regionIssues reports a region that isn't the account's. It needs no catalog.
func (c *Client) regionIssues(region string) []*backends.Error {
	if c.mayUse(region) {
		return nil
	}
	return []*backends.Error{backends.Errorf(backends.InvalidInput, "The region %q is not among the account's regions.", region).At("region").
		WithRemedy("Use %s, or add it to the account's regions.", backends.Choice(c.regions))}
}

// objectForm is looser than [uuidForm]: ids are compared and shown before one becomes
// part of a path.
var objectForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,63}$`)

// isObject tells whether a volume, snapshot or share can have the id. An answer with
// another one isn't the API's.
func isObject(id string) bool { return objectForm.MatchString(id) }

// checkObject refuses the id of a volume or snapshot that can be of none: it would
// become part of a path.
func checkObject(what, id string) error {
	if !uuidForm.MatchString(id) {
		return backends.Errorf(backends.InvalidInput, "%s: %q is not an id of DigitalOcean's: a lower-case UUID.", what, id)
	}
	return nil
}
