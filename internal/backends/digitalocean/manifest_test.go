// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"strings"
	"testing"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func TestDefinition(t *testing.T) {
	d := New(Options{})
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	if d.Attribute() != attribute || d.ListLag != time.Minute {
		t.Errorf("the attribute is %q, the lag %v", d.Attribute(), d.ListLag)
	}
	config := backends.WithDefaults(d.Manifest.Account, backends.Values{"token": "env://T", "region": "fra1"})
	if config.String("endpoint") != DefaultEndpoint {
		t.Errorf("defaults %v", config)
	}
	b, err := d.Create(config, backends.Environment{Secrets: &fixedSecrets{}})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(backends.Capabilities(b), " ")
	if !strings.HasPrefix(got, "deletionProtection edit list power reinstall resize selectiveDestroy") {
		t.Errorf("capabilities %s", got)
	}
}

func TestAccount(t *testing.T) {
	d := New(Options{})
	for name, tt := range map[string]struct {
		config backends.Values
		region string // where machines are made
		says   string // "": no issue
	}{
		"region alone":           {backends.Values{"region": "fra1"}, "fra1", ""},
		"one region":             {backends.Values{"regions": []any{"ams3"}}, "ams3", ""},
		"one of many":            {backends.Values{"region": "fra1", "regions": []any{"ams3", "fra1"}}, "fra1", ""},
		"none":                   {backends.Values{}, "", "required"},
		"many, and none chosen":  {backends.Values{"regions": []any{"ams3", "fra1"}}, "", "required"},
		"no regions":             {backends.Values{"regions": []any{}}, "", "required"},
		"not among them":         {backends.Values{"region": "nyc3", "regions": []any{"ams3", "fra1"}}, "nyc3", "ams3 or fra1"},
		"unknown region":         {backends.Values{"region": backends.Unknown}, "", ""},
		"unknown regions":        {backends.Values{"region": "nyc3", "regions": backends.Unknown}, "nyc3", ""},
		"partly unknown regions": {backends.Values{"regions": []any{"ams3", backends.Unknown}}, "", ""},
	} {
		if got := d.Region(tt.config); got != tt.region {
			t.Errorf("%s: region %q", name, got)
		}
		issues := d.CheckAccount(tt.config)
		switch {
		case tt.says == "" && len(issues) > 0, tt.says != "" && len(issues) != 1:
			t.Errorf("%s: %v", name, issues)
		case tt.says != "":
			if e := issues[0]; e.Path.String() != "region" || !strings.Contains(e.Message+e.Remedy, tt.says) {
				t.Errorf("%s: %v, %s", name, e, e.Remedy)
			}
		}
	}
}

func TestEndpoint(t *testing.T) {
	d := New(Options{})
	for endpoint, ok := range map[string]bool{
		"https://api.digitalocean.com":     true,
		"https://proxy.example:8443/do":    true,
		"http://127.0.0.1:8802":            true,
		"http://[::1]:8802":                true,
		"http://api.example":               false,
		"https://user:hunter2@api.test/v1": false,
		"https://user:12/hunter2@api.test": false,
		"https://api.test/?hunter2=1":      false,
		"https://api.test#hunter2":         false,
		"https://api.test/":                false,
		"api.test":                         false,
	} {
		config := backends.Values{"token": "env://T", "region": "fra1", "endpoint": endpoint}
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
	policy := func(v backends.Values) backends.Values { return backends.Values{"backups": true, "backup_policy": v} }
	for name, tt := range map[string]struct {
		options backends.Values
		path    string
	}{
		"all": {backends.Values{
			"ssh_key_ids": []any{"512189", "3b:16:e4:bf:8b:00:8b:b8:59:8c:a9:d3:f0:19:fa:45"}, "tags": []any{"web", "k8s:1"},
			"backups": true, "backup_policy": backends.Values{"plan": "weekly", "weekday": "SUN", "hour": int64(0)},
			"ipv6": true, "monitoring": true, "droplet_agent": false,
		}, ""},
		"key name":                {backends.Values{"ssh_key_ids": []any{"laptop"}}, "digitalocean.ssh_key_ids[0]"},
		"leading zero":            {backends.Values{"ssh_key_ids": []any{"1", "07"}}, "digitalocean.ssh_key_ids[1]"},
		"tag with a dot":          {backends.Values{"tags": []any{"v1.2"}}, "digitalocean.tags[0]"},
		"our tag":                 {backends.Values{"tags": []any{"better-compute:complete"}}, "digitalocean.tags[0]"},
		"our marker":              {backends.Values{"tags": []any{"Better-Compute"}}, "digitalocean.tags[0]"},
		"a plan there isn't":      {policy(backends.Values{"plan": "hourly"}), "digitalocean.backup_policy.plan"},
		"no plan":                 {policy(backends.Values{"hour": int64(4)}), "digitalocean.backup_policy.plan"},
		"an hour between":         {policy(backends.Values{"plan": "daily", "hour": int64(5)}), "digitalocean.backup_policy.hour"},
		"an hour too late":        {policy(backends.Values{"plan": "daily", "hour": int64(24)}), "digitalocean.backup_policy.hour"},
		"a weekday there isn't":   {policy(backends.Values{"plan": "weekly", "weekday": "sunday"}), "digitalocean.backup_policy.weekday"},
		"a weekday of daily ones": {policy(backends.Values{"plan": "daily", "weekday": "SUN"}), "digitalocean.backup_policy.weekday"},
		"a policy, no backups":    {backends.Values{"backup_policy": backends.Values{"plan": "daily"}}, "digitalocean.backup_policy"},
		"backups unknown":         {backends.Values{"backups": backends.Unknown, "backup_policy": backends.Values{"plan": "daily"}}, ""},
	} {
		c := scripted(t, always(answer{status: 500}))
		spec := testSpec()
		spec.Options = tt.options
		issues := c.CheckForm(spec)
		switch {
		case tt.path == "" && len(issues) > 0, tt.path != "" && len(issues) != 1:
			t.Errorf("%s: %v", name, issues)
		case tt.path != "" && issues[0].Path.String() != tt.path:
			t.Errorf("%s: at %s", name, issues[0].Path)
		}
	}
}
