// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func TestDefinition(t *testing.T) {
	d := New(Options{})
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	if d.Attribute() != attribute {
		t.Errorf("the attribute is %q", d.Attribute())
	}
	config := backends.WithDefaults(d.Manifest.Account, backends.Values{"token": "env://T"})
	if d.Region(config) != "fsn1" || config.String("endpoint") != DefaultEndpoint {
		t.Errorf("defaults %v", config)
	}
	want := "deletionProtection edit list power reinstall reinstallUserData resize volumes"
	b, err := d.Create(config, backends.Environment{Secrets: &fixedSecrets{}})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(backends.Capabilities(b), " "); got != want {
		t.Errorf("capabilities %s, want %s", got, want)
	}
}

func TestEndpoint(t *testing.T) {
	d := New(Options{})
	for endpoint, ok := range map[string]bool{
		"https://api.hetzner.cloud/v1":     true,
		"https://proxy.example:8443/v1":    true,
		"http://127.0.0.1:8801/v1":         true,
		"http://[::1]:8801/v1":             true,
		"http://localhost:8801/v1":         true,
		"http://api.example/v1":            false,
		"http://127.0.0.1.example/v1":      false,
		"https://user:hunter2@api.test/v1": false,
		"http://user:hunter2@[::1":         false,
		"https://user:12/hunter2@api.test": false,
		"https://api.test/v1?hunter2=1":    false,
		"https://api.test/v1?":             false,
		"https://api.test/v1#hunter2":      false,
		"https://api.test/v1#":             false,
		"https://api.test/v1/":             false,
		"https://:443/v1":                  false,
		"ftp://api.test/v1":                false,
		"api.test/v1":                      false,
		"//api.test/v1":                    false,
	} {
		config := backends.Values{"token": "env://T", "endpoint": endpoint}
		issues := backends.Validate(d.Manifest.Account, config, backends.Path{attribute})
		if (len(issues) == 0) != ok {
			t.Errorf("%s: %v", endpoint, issues)
		}
		_, err := d.Create(config, backends.Environment{Secrets: &fixedSecrets{}})
		if (err == nil) != ok {
			t.Errorf("%s: create: %v", endpoint, err)
		}
		for _, e := range issues {
			if strings.Contains(e.Error(), "hunter2") {
				t.Errorf("the message repeats the value: %v", e)
			}
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the message repeats the value: %v", err)
		}
	}
}

func TestMachineOptions(t *testing.T) {
	for name, tt := range map[string]struct {
		options backends.Values
		path    string
	}{
		"all": {backends.Values{
			"ssh_key_ids": []any{"1", "laptop"}, "firewall_ids": []any{"38"},
			"networks":    []any{backends.Values{"network_id": "4711", "ip": "10.0.0.2", "alias_ips": []any{"10.0.0.3"}}},
			"public_ipv4": false, "public_ipv6": true, "placement_group_id": "9", "backups": true,
		}, ""},
		"firewall name":  {backends.Values{"firewall_ids": []any{"web"}}, "hetzner_cloud.firewall_ids[0]"},
		"zero":           {backends.Values{"placement_group_id": "0"}, "hetzner_cloud.placement_group_id"},
		"leading zero":   {backends.Values{"placement_group_id": "07"}, "hetzner_cloud.placement_group_id"},
		"sign":           {backends.Values{"placement_group_id": "+7"}, "hetzner_cloud.placement_group_id"},
		"too large":      {backends.Values{"placement_group_id": "9007199254740992"}, "hetzner_cloud.placement_group_id"},
		"no network":     {backends.Values{"networks": []any{backends.Values{"ip": "10.0.0.2"}}}, "hetzner_cloud.networks[0].network_id"},
		"ip with prefix": {backends.Values{"networks": []any{backends.Values{"network_id": "1", "ip": "10.0.0.2/24"}}}, "hetzner_cloud.networks[0].ip"},
		"IPv6":           {backends.Values{"networks": []any{backends.Values{"network_id": "1", "ip": "fd00::1"}}}, "hetzner_cloud.networks[0].ip"},
		"alias":          {backends.Values{"networks": []any{backends.Values{"network_id": "1", "alias_ips": []any{"x"}}}}, "hetzner_cloud.networks[0].alias_ips[0]"},
	} {
		issues := backends.Validate(New(Options{}).Manifest.Machine, tt.options, backends.Path{attribute})
		switch {
		case tt.path == "" && len(issues) > 0, tt.path != "" && len(issues) != 1:
			t.Errorf("%s: %v", name, issues)
		case tt.path != "" && issues[0].Path.String() != tt.path:
			t.Errorf("%s: at %s", name, issues[0].Path)
		}
	}
}

func FuzzLabels(f *testing.F) {
	f.Add("role", "web")
	f.Add("example.com/role", "")
	f.Add("better-compute.io/claim", "x")
	f.Add("a/b/c", "x")
	f.Add("-a", "b-")
	f.Fuzz(func(t *testing.T, key, value string) {
		if len(checkLabels(map[string]string{key: value}, DefaultLabelPrefix)) > 0 {
			return
		}
		// What is accepted must fit the API's rule and leave our marks alone.
		if strings.Count(key, "/") > 1 || len(key) == 0 || len(value) > maxLabelPart || strings.ContainsAny(key+value, " ,=!()\n") {
			t.Errorf("accepted %q=%q", key, value)
		}
		l := markLabels{prefix: DefaultLabelPrefix}
		marks := backends.Marks{Managed: true, Key: "k", Claim: "c", Complete: true}
		labels := l.write(map[string]string{key: value}, marks)
		if l.read(labels) != marks || labels[key] != value {
			t.Errorf("%q=%q: %v", key, value, labels)
		}
	})
}

func TestMarks(t *testing.T) {
	l := markLabels{prefix: "example.org"}
	marks := testSpec().Marks
	marks.Complete = true
	labels := l.write(map[string]string{"role": "web", "example.org/digest": "old", "example.org/stray": "x"}, marks)
	if labels["role"] != "web" || labels["example.org/complete"] != "true" || len(labels) != 8 {
		t.Errorf("got %v", labels)
	}
	if got := l.read(labels); got != marks {
		t.Errorf("read %+v", got)
	}
	delete(labels, "example.org/managed")
	if got := l.read(labels); got != (backends.Marks{}) {
		t.Errorf("an unmanaged object has marks: %+v", got)
	}
	if _, ok := l.selector(labelKey, "a,b"); ok {
		t.Error("a value becomes selector syntax")
	}
}
