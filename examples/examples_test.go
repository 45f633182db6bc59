// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package examples_test holds what users copy (the examples, the README, the
// documentation's sources) against the provider's schema. The CLIs can't be asked:
// they drop a misspelt name inside a nested attribute without a word, and validate
// no configuration whose other half is left out.
package examples_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/registry"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

const root = ".."

// text is a piece of configuration and where it stands.
type text struct{ name, config string }

// TestConfigurations holds every configuration that a user may copy against the
// schema.
func TestConfigurations(t *testing.T) {
	known := schemas(t)
	found := 0
	for _, c := range append(exampleFiles(t), fencedConfigurations(t)...) {
		found++
		for _, problem := range known.check(c) {
			t.Error(problem)
		}
	}
	if found < 20 {
		t.Errorf("only %d configurations were found: the test looks in the wrong place", found)
	}
}

// TestCheck shows that the check finds what the CLIs don't.
func TestCheck(t *testing.T) {
	known := schemas(t)
	for name, c := range map[string]struct{ config, problem string }{
		"nested name": {`resource "bettercompute_provider_account" "a" {
			hetzner_cloud = { lokation = "nbg1" }
		}`, "hetzner_cloud.lokation"},
		"deeper name": {`resource "bettercompute_instance" "a" {
			hetzner_cloud = { networks = [{ network = 1 }] }
		}`, "hetzner_cloud.networks.network"},
		"top-level name": {`resource "bettercompute_pool" "a" { flavor = {} }`, "flavor"},
		"block":          {`resource "bettercompute_pool" "a" { limits { instances = 1 } }`, "limits"},
		"type":           {`resource "bettercompute_server" "a" {}`, "bettercompute_server"},
		"reference":      {`output "a" { value = bettercompute_pool.web.url }`, "bettercompute_pool.web.url"},
		"indexed":        {`output "a" { value = bettercompute_instance.web["a"].ip }`, "bettercompute_instance.web.ip"},
		"data":           {`output "a" { value = data.bettercompute_offers.all.rows }`, "data.bettercompute_offers.all.rows"},
		"syntax":         {`resource "bettercompute_pool" {{`, "a.tf"},
	} {
		t.Run(name, func(t *testing.T) {
			problems := known.check(text{"a.tf", c.config})
			if len(problems) == 0 || !strings.Contains(problems[0], c.problem) {
				t.Errorf("got %q, want one that names %s", problems, c.problem)
			}
		})
	}
}

// TestUris reads every uri that a user may copy with the provider's own parser,
// which insists on the one spelling that each has.
func TestUris(t *testing.T) {
	clouds, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	uri := regexp.MustCompile(`(?:hetzner-cloud|digitalocean|proxmox)://[a-z][^\s"'|` + "`" + `]*`)
	found := 0
	for _, path := range files(t, ".tf", ".sh", ".md", ".tmpl") {
		for _, s := range uri.FindAllString(read(t, path), -1) {
			found++
			if _, err := reference.Parse(clouds, s); err != nil {
				t.Errorf("%s: %s: %v", path, s, err)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d uris were found: the test looks in the wrong place", found)
	}
}

// exampleFiles are the configurations below this folder.
func exampleFiles(t *testing.T) []text {
	t.Helper()
	var out []text
	for _, path := range files(t, ".tf") {
		out = append(out, text{path, read(t, path)})
	}
	return out
}

var fence = regexp.MustCompile("(?ms)^[ ]*```terraform\n(.*?)^[ ]*```$")

// fencedConfigurations are those inside of Markdown.
func fencedConfigurations(t *testing.T) []text {
	t.Helper()
	var out []text
	for _, path := range files(t, ".md", ".tmpl") {
		for _, m := range fence.FindAllStringSubmatch(read(t, path), -1) {
			out = append(out, text{path, m[1]})
		}
	}
	return out
}

// files are the sources of what users read: examples, templates, and the pages at
// the root. docs/ is made from them.
func files(t *testing.T, endings ...string) []string {
	t.Helper()
	var out []string
	keep := func(path string) {
		for _, e := range endings {
			if strings.HasSuffix(path, e) {
				out = append(out, path)
			}
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		keep(page)
	}
	for _, folder := range []string{"examples", "templates"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == ".terraform":
				return fs.SkipDir
			case !d.IsDir():
				keep(path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// parse reads a configuration.
func parse(c text) (*hclsyntax.Body, error) {
	file, diags := hclsyntax.ParseConfig([]byte(c.config), c.name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	return file.Body.(*hclsyntax.Body), nil
}
