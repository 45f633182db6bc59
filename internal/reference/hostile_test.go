// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reference_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/registry"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// hostileURIs are what no resource exports: states edited by hand, pasted texts.
func hostileURIs() []string {
	const account = "hetzner-cloud://root/main?token=env://T"
	const cluster = "proxmox://root/main?token=env://T&url=https://pve.test:8006"
	return []string{
		"", " ", "\x00", "\xff\xfe", "://", "x://", "hetzner-cloud:", "hetzner-cloud://", "hetzner-cloud:///", "hetzner-cloud://root", account[:20],
		account + "\n\x1b[31mforged", account + "%0a", account + "%zz", account + "&token=env://U", account + "&", account + "#x", account + "?", account + "&a=b&a=b",
		"hetzner-cloud://root/main?token=S3CR3T", "hetzner-cloud://u:S3CR3T@root/main?token=env://T", "hetzner-cloud://root/main?endpoint=https://u:S3CR3T@h&token=env://T",
		"hetzner-cloud://../../etc/passwd?token=env://T", "hetzner-cloud://root/%2e%2e/x?token=env://T", "hetzner-cloud://root/main/web/instances/%00/1?token=env://T",
		"hetzner-cloud://root/main/web?pool.limits.price_per_hour=1e999999999&token=env://T",
		"hetzner-cloud://root/main/web?pool.limits.price_per_hour=" + strings.Repeat("9", 1<<16) + "&token=env://T",
		"hetzner-cloud://root/main/web?pool.limits.instances=99999999999999999999&token=env://T",
		"hetzner-cloud://root/main/web?pool.limits.disk_gib=-1&pool.adopt=TRUE&token=env://T",
		cluster, cluster + "&vmid_min=9999999999999999999", cluster + "&task_timeout=1e400h", cluster + "&offers=" + strings.Repeat("1c-1g,", 5000),
		cluster + "&tls_fingerprint=" + strings.Repeat("AA:", 100000), cluster + "&snippets.sftp.host=" + strings.Repeat("%5B", 1000),
		cluster + "&" + strings.Repeat("snippets.", 10000) + "x=1", strings.Repeat("hetzner-cloud://", 10000), "digitalocean://root/main?region=" + strings.Repeat("a", 1<<20) + "&token=env://T",
		"\u202ehetzner-cloud://root/main", "hetzner-cloud://root/ma\u0130n?token=env://T", "HETZNER-CLOUD://root/main?token=env://T", "inst_0123456789abcdefghjkmnpqrs",
	}
}

// Whatever stands where a uri belongs: it is one, in its one spelling, or an error that
// a terminal can show and that holds none of what may be a secret.
func FuzzURI(f *testing.F) {
	known, err := registry.New()
	if err != nil {
		f.Fatal(err)
	}
	for _, uri := range hostileURIs() {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		r, err := reference.Parse(known, uri)
		if err == nil {
			if r.String() != uri {
				t.Errorf("%.200q is read as %.200q", uri, r.String())
			}
			return
		}
		e := backends.AsError(err)
		if e == nil || e.Code != backends.InvalidInput || e.Remedy == "" {
			t.Fatalf("%.200q: %T %v", uri, err, err)
		}
		said := e.Error() + e.Remedy
		if strings.Contains(said, "S3CR3T") || !utf8.ValidString(said) || len(said) > 32<<10 ||
			strings.ContainsFunc(e.Error(), func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }) {
			t.Errorf("%.200q: %.300q", uri, said)
		}
	})
}
