// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"fmt"
	"os"
	"strings"
)

// The lines between which the README's numbers stand.
const (
	blockBegin = "<!-- make bench: begin -->\n"
	blockEnd   = "<!-- make bench: end -->\n"
)

// rewriteReadme puts the numbers into a file's block.
func rewriteReadme(file, numbers string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := replaceBlock(string(old), numbers)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// replaceBlock replaces what stands between the two lines, of which there must be one
// pair.
func replaceBlock(text, numbers string) (string, error) {
	before, rest, begins := strings.Cut(text, blockBegin)
	_, after, ends := strings.Cut(rest, blockEnd)
	if !begins || !ends || strings.Contains(after, blockBegin) {
		return "", fmt.Errorf("it needs one pair of the lines %q and %q", strings.TrimSpace(blockBegin), strings.TrimSpace(blockEnd))
	}
	return before + blockBegin + numbers + blockEnd + after, nil
}
