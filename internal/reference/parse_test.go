// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reference

import (
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

const secretText = "S3CR3TS3CR3TS3CR3TS3CR3TS3CR3TS3CR3TS3CR3TS3CR3TS3CR3TS3CR3TS3CR3T"

func TestParseRefuses(t *testing.T) {
	r := testRegistry(t)
	for uri, words := range map[string][]string{
		// not a uri at all
		"":                                 {"empty", "://tenant/account"},
		"main":                             {"no scheme", "full-cloud, hetzner-cloud"},
		secretText:                         {"no scheme"},
		"env://" + secretText:              {"a secret reference", "full-cloud, hetzner-cloud"},
		"pacct_gdqdmy7rwzvc5fbhc3tvhwqq51": {"id of an account", "bettercompute_provider_account.<name>.uri"},
		"inst_0hs305x8w4a0vz09p8tpwgjg3s":  {"id of an instance", "bettercompute_instance.<name>.uri"},
		"hetzner://root/main":              {"\"hetzner\" is no cloud", "full-cloud, hetzner-cloud"},
		"Hetzner-Cloud://root/main":        {"\"Hetzner-Cloud\" is no cloud"},
		"\thetzner-cloud://root/main":      {"scheme is malformed"},
		"hetzner-cloud:root/main":          {"no scheme"},
		"hetzner-cloud://" + strings.Repeat("a", 70<<10): {"longer than"},
		// what urls have and ours don't
		"hetzner-cloud://root/main?token=vault://a/b#c":                   {"fragment", "%23"},
		"hetzner-cloud://user:" + secretText + "@root/main?token=env://T": {"user name or password"},
		"hetzner-cloud://root:80/main?token=env://T":                      {"port", "%3A"},
		"hetzner-cloud://org:acme/main?token=env://T":                     {"%3A"},
		// names
		"hetzner-cloud://":                                           {"tenant", "empty"},
		"hetzner-cloud:///main?token=env://T":                        {"tenant", "empty"},
		"hetzner-cloud://root?token=env://T":                         {"names no account", "hetzner-cloud://tenant/account"},
		"hetzner-cloud://root/?token=env://T":                        {"account name", "empty"},
		"hetzner-cloud://root/main/?token=env://T":                   {"pool name", "empty"},
		"hetzner-cloud://root//web?token=env://T":                    {"account name", "empty"},
		"hetzner-cloud://ro%20ot/main?token=env://T":                 {"tenant", "letters"},
		"hetzner-cloud://ro%zzot/main?token=env://T":                 {"tenant", "hexadecimal"},
		"hetzner-cloud://root/m%FFn?token=env://T":                   {"account name", "UTF-8"},
		"hetzner-cloud://root/Main?token=env://T":                    {"account name", "\"Main\"", "lower-case"},
		"hetzner-cloud://root/" + secretText + "?token=env://T":      {"account name"},
		"hetzner-cloud://root/main/w%2Fb?token=env://T":              {"pool name", "lower-case"},
		"hetzner-cloud://root/main/web/servers/x?token=env://T":      {"\"servers\"", "instances/"},
		"hetzner-cloud://root/main/web/instances?token=env://T":      {"names no instance"},
		"hetzner-cloud://root/main/web/instances/?token=env://T":     {"instance name", "empty"},
		"hetzner-cloud://root/main/web/instances/Web?token=env://T":  {"instance name", "\"Web\"", "hostname"},
		"hetzner-cloud://root/main/web/instances/a..b?token=env://T": {"instance name"},
		"hetzner-cloud://root/main/web/instances/a-?token=env://T":   {"instance name"},
		"hetzner-cloud://root/main/web/instances/" + strings.Repeat("a", 40) + "." + strings.Repeat("b", 40) + "?token=env://T": {"at most 63"},
		"hetzner-cloud://root/main/web/instances/a/?token=env://T":                                                              {"machine id", "empty"},
		"hetzner-cloud://root/main/web/instances/a/%07?token=env://T":                                                           {"machine id", "printable"},
		"hetzner-cloud://root/main/web/instances/a/1/2?token=env://T":                                                           {"after the machine id", "%2F"},
		"hetzner-cloud://root/main/web/volumes?token=env://T":                                                                   {"names no volume"},
		"hetzner-cloud://root/main/web/volumes/0a?token=env://T":                                                                {"volume name", "\"0a\""},
		"hetzner-cloud://root/main/web/volumes/a/x?token=env://T":                                                               {"after the volume", "snapshots"},
		"hetzner-cloud://root/main/web/volumes/a/snapshots?token=env://T":                                                       {"names no snapshot"},
		"hetzner-cloud://root/main/web/volumes/a/snapshots/B?token=env://T":                                                     {"snapshot name"},
		"hetzner-cloud://root/main/web/volumes/a/snapshots/b/c?token=env://T":                                                   {"after the snapshot"},
		// configuration
		"hetzner-cloud://root/main":                                                         {"token is required"},
		"hetzner-cloud://root/main?location=nbg1":                                           {"token is required"},
		"hetzner-cloud://root/main?token=" + secretText:                                     {"token must be a secret reference"},
		"hetzner-cloud://root/main?token=":                                                  {"token must be a secret reference"},
		"hetzner-cloud://root/main?token=env://" + secretText + "-x":                        {"token", "malformed"},
		"hetzner-cloud://root/main?token=vault://a/b":                                       {"token", "field after a #"},
		"hetzner-cloud://root/main?location=mars&token=env://T":                             {"\"mars\" is not a known location", "fsn1, nbg1"},
		"hetzner-cloud://root/main?location=mars":                                           {"token is required", "mars"},
		"hetzner-cloud://root/main?nope=1&token=env://T":                                    {"unknown key: key nope", "endpoint, location, token"},
		"hetzner-cloud://root/main?" + strings.ToLower(secretText) + "=1&token=env://T":     {"unknown key"},
		"hetzner-cloud://root/main?token.x=1&token=env://T":                                 {"unknown key: key token.x"},
		"hetzner-cloud://root/main?" + secretText:                                           {"query", "equals sign"},
		"hetzner-cloud://root/main?token=env://T&":                                          {"query", "equals sign"},
		"hetzner-cloud://root/main?token=env://T&token=env://T":                             {"key token", "twice"},
		"hetzner-cloud://root/main?token=env://T%4":                                         {"key token", "hexadecimal"},
		"hetzner-cloud://root/main?pool.adopt=true&token=env://T":                           {"key pool.adopt", "the pool only"},
		"hetzner-cloud://root/main/web/instances/a?pool.limits.instances=1&token=env://T":   {"key pool.limits.instances", "the pool only"},
		"hetzner-cloud://root/main/web?pool.adopt=yes&token=env://T":                        {"key pool.adopt"[4:], "true or false"},
		"hetzner-cloud://root/main/web?pool.limits.instances=-1&token=env://T":              {"pool.limits.instances", "not negative"},
		"hetzner-cloud://root/main/web?pool.limits.disk_gib=1.5&token=env://T":              {"pool.limits.disk_gib", "whole number"},
		"hetzner-cloud://root/main/web?pool.limits.price_per_hour=1.50&token=env://T":       {"pool.limits.price_per_hour", "decimal"},
		"hetzner-cloud://root/main/web?pool.limits.gpus=1&token=env://T":                    {"unknown key: key pool.limits.gpus", "pool.adopt"},
		"full-cloud://root/main?low=x&token=env://T":                                        {"low", "whole number"},
		"full-cloud://root/main?low=99999999999999999999&token=env://T":                     {"low", "whole number"},
		"full-cloud://root/main?clone=1&token=env://T":                                      {"clone", "true or false"},
		"full-cloud://root/main?high=1&token=env://T":                                       {"high", "below low"},
		"full-cloud://root/main?snippets=x&token=env://T":                                   {"snippets", "object"},
		"full-cloud://root/main?snippets.nope=x&token=env://T":                              {"unknown key: key snippets.nope", "snippets.sftp.host"},
		"full-cloud://root/main?offers=a,,b&token=env://T":                                  {"offers"},
		"full-cloud://root/main?snippets.sftp.private_key=" + secretText + "&token=env://T": {"snippets.sftp.private_key", "secret reference"},
	} {
		ref, err := Parse(r, uri)
		e := backends.AsError(err)
		if e == nil || e.Code != backends.InvalidInput || e.Remedy == "" || ref.Kind != "" {
			t.Errorf("Parse(%s) = %s, %#v", uri, ref, err)
			continue
		}
		said := e.Message + " " + e.Remedy
		for _, w := range words {
			if !strings.Contains(said, w) {
				t.Errorf("Parse(%s): %q doesn't say %q", uri, said, w)
			}
		}
		if strings.Contains(strings.ToUpper(said), secretText[:12]) {
			t.Errorf("Parse(%s) repeats what may be a credential: %q", uri, said)
		}
	}
}

// Another spelling of something clear is refused, with the part at fault and the
// right spelling.
func TestParseRefusesOtherSpellings(t *testing.T) {
	r := testRegistry(t)
	for uri, want := range map[string]struct{ part, canonical string }{
		"hetzner-cloud://root/main?token=env://T&location=nbg1":                {"not sorted", "hetzner-cloud://root/main?location=nbg1&token=env://T"},
		"hetzner-cloud://root/main?location=fsn1&token=env://T":                {"key location spells out", "hetzner-cloud://root/main?token=env://T"},
		"hetzner-cloud://root/main?token=env%3A%2F%2FT":                        {"key token", "hetzner-cloud://root/main?token=env://T"},
		"hetzner-cloud://root/m%61in?token=env://T":                            {"account name", "hetzner-cloud://root/main?token=env://T"},
		"hetzner-cloud://org%3aacme/main?token=env://T":                        {"tenant", "hetzner-cloud://org%3Aacme/main?token=env://T"},
		"hetzner-cloud://root/main?endpoint=https://a?b&token=env://T":         {"key endpoint", "hetzner-cloud://root/main?endpoint=https://a%3Fb&token=env://T"},
		"hetzner-cloud://root/main/web?pool.adopt=false&token=env://T":         {"key pool.adopt spells out", "hetzner-cloud://root/main/web?token=env://T"},
		"hetzner-cloud://root/main/web?pool.limits.instances=03&token=env://T": {"key pool.limits.instances", "hetzner-cloud://root/main/web?pool.limits.instances=3&token=env://T"},
		"hetzner-cloud://root/main/web/instances/a/b c?token=env://T":          {"machine id", "hetzner-cloud://root/main/web/instances/a/b%20c?token=env://T"},
		"full-cloud://root/main?low=%2B7&token=env://T":                        {"key low", "full-cloud://root/main?low=7&token=env://T"},
		"full-cloud://root/main?regions=b,a&token=env://T":                     {"key regions", "full-cloud://root/main?regions=a,b&token=env://T"},
		"full-cloud://root/main?offers=1c-2g,2c-4g&token=env://T":              {"key offers spells out", "full-cloud://root/main?token=env://T"},
		"full-cloud://root/main?snippets=&snippets.sftp=&token=env://T":        {"key snippets spells out", "full-cloud://root/main?snippets.sftp=&token=env://T"},
		"full-cloud://root/main?snippets.sftp=&snippets=&token=env://T":        {"key snippets spells out", "full-cloud://root/main?snippets.sftp=&token=env://T"},
		"full-cloud://root/main?snippets.storage=local&token=env://T":          {"key snippets.storage spells out", "full-cloud://root/main?snippets=&token=env://T"},
	} {
		_, err := Parse(r, uri)
		e := backends.AsError(err)
		if e == nil || e.Code != backends.InvalidInput || !strings.Contains(e.Message, want.part) || e.Remedy != "Write: "+want.canonical {
			t.Errorf("Parse(%s): %#v; want it to name %q and to show %s", uri, err, want.part, want.canonical)
		}
		if _, err := Parse(r, want.canonical); err != nil {
			t.Errorf("the spelling it should show, %s: %v", want.canonical, err)
		}
	}
}

func TestParseKind(t *testing.T) {
	r := testRegistry(t)
	uris := map[Kind]string{
		KindAccount:  "hetzner-cloud://root/main?token=env://T",
		KindPool:     "hetzner-cloud://root/main/web?token=env://T",
		KindInstance: "hetzner-cloud://root/main/web/instances/a/1?token=env://T",
		KindVolume:   "hetzner-cloud://root/main/web/volumes/a?token=env://T",
		KindSnapshot: "hetzner-cloud://root/main/web/volumes/a/snapshots/b?token=env://T",
	}
	for is, uri := range uris {
		for wanted := range uris {
			ref, err := ParseKind(r, wanted, uri)
			if is == wanted {
				if err != nil || ref.Kind != is {
					t.Errorf("ParseKind(%s, %s) = %s, %v", wanted, uri, ref.Kind, err)
				}
				continue
			}
			e := backends.AsError(err)
			if e == nil || e.Code != backends.InvalidInput || ref.Kind != "" ||
				!strings.Contains(e.Message, "the uri of "+withArticle(is)) || !strings.Contains(e.Message, withArticle(wanted)+" is wanted") ||
				!strings.Contains(e.Remedy, wanted.Resource()+".<name>.uri") {
				t.Errorf("ParseKind(%s, %s): %#v", wanted, uri, err)
			}
		}
	}
	_, err := ParseKind(r, KindPool, "pool_gbn0jp5vcfa5kyny3xtzs6a0kk")
	if e := backends.AsError(err); e == nil || !strings.Contains(e.Message, "id of a pool") || !strings.Contains(e.Remedy, "bettercompute_pool.<name>.uri") {
		t.Errorf("an id for a uri: %#v", err)
	}
	if _, err := ParseKinds(r, uris[KindPool], KindAccount, KindPool); err != nil {
		t.Error(err)
	}
	_, err = ParseKinds(r, uris[KindVolume], KindAccount, KindPool)
	if e := backends.AsError(err); e == nil || !strings.Contains(e.Message, "the uri of an account or the uri of a pool is wanted") {
		t.Errorf("a volume for an account or pool: %#v", err)
	}
}
