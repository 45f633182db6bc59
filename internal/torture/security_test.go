// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package torture_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSecurityNamesTestsThatExist holds SECURITY.md to the tests that it promises, each
// in one of the folders of its row.
func TestSecurityNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+|internal/[\\w/]+)`")
	checked := 0
	for row := range strings.Lines(string(text)) {
		var names, sources []string
		for _, match := range quoted.FindAllStringSubmatch(row, -1) {
			if !strings.HasPrefix(match[1], "internal/") {
				names = append(names, match[1])
				continue
			}
			files, err := filepath.Glob(filepath.Join(root, match[1], "*_test.go"))
			if err != nil || len(files) == 0 {
				t.Errorf("%s has no tests: %v", match[1], err)
			}
			for _, file := range files {
				source, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				sources = append(sources, string(source))
			}
		}
		for _, name := range names {
			checked++
			if !slices.ContainsFunc(sources, func(s string) bool { return strings.Contains(s, "\nfunc "+name+"(") }) {
				t.Errorf("there is no %s in the folders of its row", name)
			}
		}
	}
	if checked < 10 {
		t.Errorf("found only %d names", checked)
	}
}
