// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"regexp"
	"strconv"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// attribute is the cloud's attribute in accounts and instances.
const attribute = "digitalocean"

// maxID is the largest id of a Droplet, image, key or action that JSON numbers
// hold exactly.
const maxID = 1<<53 - 1

func accountFields(endpoint string) []backends.Field {
	return []backends.Field{
		{
			Name: "token", Type: backends.TypeString, Required: true, Secret: true,
			Description: "A reference to an API token of the team. It is resolved for every request. A token with custom scopes needs those of `droplet`, `tag` and `actions`, and to read `sizes`, `regions`, `image`, `vpc` and `ssh_key`; for volumes and snapshots those of `block_storage`, `block_storage_action`, `block_storage_snapshot` and `snapshot` too, and for shared volumes those of `nfs`.",
		},
		{
			Name: "region", Type: backends.TypeString, Check: stringCheck(checkSlug),
			Description: "Where machines are made that name no region, such as `fra1`. Required, unless `regions` has exactly one.",
		},
		{
			Name: "regions", Type: backends.TypeStringSet, Check: stringCheck(checkSlug),
			Description: "The regions that may be used; unset: all that DigitalOcean has.",
		},
		{
			Name: "endpoint", Type: backends.TypeString, Default: endpoint, Check: stringCheck(checkEndpoint),
			Description: "The API's base url, without the version and without a trailing slash. It must be https, unless it is on this machine.",
		},
	}
}

func machineFields(tagPrefix string) []backends.Field {
	return []backends.Field{
		{
			Name: "ssh_key_ids", Type: backends.TypeStringList, Check: stringCheck(checkKey),
			Description: "Ids or fingerprints of the team's SSH keys, put on the Droplet when it is made. A change takes effect at the next creation.",
		},
		{
			Name: "tags", Type: backends.TypeStringSet, Check: stringCheck(func(tag string) string { return checkTag(tag, tagPrefix) }),
			Description: "Raw tags besides those of `labels`, on the Droplet from its making on, so that firewalls and load balancers that select by them hold at once. Changed in place; tags that others have put there stay. DigitalOcean ignores their case.",
		},
		{Name: "backups", Type: backends.TypeBool, Description: "Automatic backups by DigitalOcean, at extra cost; changed in place. Unset: a new Droplet has none, and one that exists is left as it is."},
		{
			Name: "backup_policy", Type: backends.TypeObject,
			Description: "When backups are made; changed in place. Unset: daily, at a time that DigitalOcean chooses, for backups that are switched on, and as it is for others. It needs `backups = true`.",
			Fields: []backends.Field{
				{
					Name: "plan", Type: backends.TypeString, Required: true, Options: []string{"daily", "weekly"},
					Description: "How often a backup is made.",
				},
				{
					Name: "weekday", Type: backends.TypeString, Options: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"},
					Description: "The day of a weekly backup.",
				},
				{
					Name: "hour", Type: backends.TypeInt, Check: checkHour,
					Description: "The hour (UTC) at which the four-hour window of the backup begins: 0, 4, 8, 12, 16 or 20.",
				},
			},
		},
		{Name: "ipv6", Type: backends.TypeBool, Description: "A public IPv6 address. It can be switched on in place, and then has to be configured in the guest, and never off. Unset: a new Droplet has none."},
		{Name: "monitoring", Type: backends.TypeBool, Description: "DigitalOcean's agent for metrics; unset: none. A change takes effect at the next creation."},
		{
			Name: "droplet_agent", Type: backends.TypeBool,
			Description: "The agent for the web console. Unset: it is installed where the image supports it; true: the creation fails where it doesn't; false: it is left out. A change takes effect at the next creation.",
		},
	}
}

func stringCheck(check func(string) string) func(any) string {
	return func(value any) string {
		s, ok := value.(string)
		if !ok {
			return "" // not this check's to say
		}
		return check(s)
	}
}

func checkEndpoint(s string) string { return backends.EndpointProblem(s, DefaultEndpoint) }

// slugForm is what regions are called.
var slugForm = regexp.MustCompile(`^[a-z0-9]+(?:-[a-z0-9]+)*$`)

func checkSlug(s string) string {
	if !slugForm.MatchString(s) {
		return strconv.Quote(s) + " is not a region of DigitalOcean: lower-case letters and digits, such as fra1."
	}
	return ""
}

func checkHour(value any) string {
	if hour, ok := value.(int64); ok && (hour < 0 || hour > 20 || hour%4 != 0) {
		return "A backup's window begins at 0, 4, 8, 12, 16 or 20 o'clock."
	}
	return ""
}

// parseID reads a numeric id of the cloud: a positive integer in its one spelling.
func parseID(s string) (int, bool) {
	id, err := strconv.ParseInt(s, 10, strconv.IntSize)
	return int(id), err == nil && id > 0 && id <= maxID && strconv.FormatInt(id, 10) == s
}

func checkID(s string) string {
	if _, ok := parseID(s); !ok {
		return strconv.Quote(s) + " is not an id of DigitalOcean: a positive integer, such as 3164444."
	}
	return ""
}

// fingerprintForm is that of the API's SSH keys: MD5, sixteen pairs of hex digits.
var fingerprintForm = regexp.MustCompile(`^[0-9a-f]{2}(?::[0-9a-f]{2}){15}$`)

func checkKey(s string) string {
	if _, ok := parseID(s); !ok && !fingerprintForm.MatchString(s) {
		return strconv.Quote(s) + " is neither the id nor the fingerprint of an SSH key: a positive integer, or sixteen pairs of hex digits as in 3b:16:e4:…"
	}
	return ""
}

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func checkVPC(s string) string {
	if !uuidForm.MatchString(s) {
		return strconv.Quote(s) + " is not the id of a VPC: a lower-case UUID such as 760e09ef-dc84-11e8-981e-3cfdfeaae000."
	}
	return ""
}
