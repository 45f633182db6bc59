// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// measured is a small report.
func measured() report {
	refresh := func(n, reads int, wall time.Duration) row {
		return row{Phase: phaseRefresh, N: n, Reads: reads, cost: cost{Wall: wall, CPU: wall / 2, Provider: usage{CPU: wall / 4, Memory: 40 << 20}}}
	}
	return report{
		Options: options{sizes: []int{10, 100}, refreshSize: 500, latency: 50 * time.Millisecond, boot: time.Second, parallelism: 64},
		CLI:     "OpenTofu v1", Machine: "2 processors",
		Series: []series{{
			Title: "A & B, instances", Cloud: "A & B", Kind: instances,
			Rows: []row{
				{Phase: phaseApply, N: 10, Changes: 20, Reads: 8, cost: cost{Wall: 1500 * time.Millisecond}},
				refresh(10, 1, time.Second), refresh(100, 2, 2*time.Second), refresh(500, 10, 9*time.Second),
			},
		}},
		Ratios: []ratio{{Command: "plan", N: 100, Ours: cost{Wall: 1300 * time.Millisecond}, Resources: cost{Wall: time.Second}, Answers: cost{Wall: 500 * time.Millisecond}}},
		Start:  42 * time.Millisecond, Size: 44 << 20,
	}
}

func TestMarkdownShowsEveryRow(t *testing.T) {
	text := measured().markdown()
	for _, want := range []string{
		"| N | phase | calls | changes | reads | wall | CPU | provider CPU | provider memory |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
		"| 10 | apply | 28 | 20 | 8 | 1.5 s | 0.0 s | 0.0 s | 0 MiB |\n",
		"| 500 | refresh | 10 | 0 | 10 | 9.0 s | 4.5 s | 2.2 s | 40 MiB |\n",
		"| plan | 100 | 1.3 s | 1.0 s | 1.20 | 0.5 s | 2.40 |", // two round trips less
		"The binary has 44 MiB", "42 ms (median of 11)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// The README shows refreshes only, a line for each workload.
func TestSummary(t *testing.T) {
	text := measured().summary()
	want := "| refresh of | N = 10 | N = 100 | N = 500 |\n| --- | --- | --- | --- |\n" +
		"| A & B, instances | 1 call, 1.0 s, 40 MiB | 2 calls, 2.0 s, 40 MiB | 10 calls, 9.0 s, 40 MiB |\n"
	if !strings.HasPrefix(text, want) || !strings.Contains(text, "takes 1.20 times as long") {
		t.Errorf("the summary is\n%s", text)
	}
}

// Each chart is well-formed XML without a script, has labelled axes, both colour
// schemes, a line for each workload, and is the same each time.
func TestCharts(t *testing.T) {
	charts := measured().charts()
	if len(charts) != 2 || charts[0].File == charts[1].File {
		t.Fatalf("the charts are %+v", charts)
	}
	for _, c := range charts {
		svg, err := c.svg()
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		decoder := xml.NewDecoder(strings.NewReader(svg))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, svg)
			}
			switch token := token.(type) {
			case xml.StartElement:
				if token.Name.Local == "script" {
					t.Error("a script")
				}
			case xml.CharData:
				texts = append(texts, string(token))
			}
		}
		all := strings.Join(texts, "\n")
		for _, want := range []string{"A & B, instances", "objects (N)", c.Y, "\n10\n", "\n100\n", "\n1000\n"} {
			if !strings.Contains(all, want) {
				t.Errorf("%s: no %q among its texts", c.File, want)
			}
		}
		if !strings.Contains(svg, "prefers-color-scheme: dark") {
			t.Errorf("%s: no dark colours", c.File)
		}
		if again, err := c.svg(); err != nil || again != svg {
			t.Errorf("%s is another one the second time (%v)", c.File, err)
		}
	}
}

func TestAxis(t *testing.T) {
	a := newAxis([]float64{3, 5000}, 100, 500)
	for value, want := range map[float64]float64{1: 100, 10: 200, 10000: 500, 0: 100, 0.01: 100} {
		if got := a.at(value); got != want {
			t.Errorf("%g is at %g, not %g", value, got, want)
		}
	}
	if got := len(a.ticks()); got != 5 {
		t.Errorf("%d ticks", got)
	}
	for name, values := range map[string][]float64{"no value": nil, "one power of ten": {10}, "nothing above 0": {0}} {
		if a := newAxis(values, 0, 10); a.high <= a.low {
			t.Errorf("%s: the axis is %+v", name, a)
		}
	}
}

func TestReplaceBlock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "README.md")
	for _, numbers := range []string{"first\n", "second\n"} { // what is there goes
		if numbers == "first\n" {
			if err := os.WriteFile(file, []byte("before\n"+blockBegin+blockEnd+"after\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := rewriteReadme(file, numbers); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if want := "before\n" + blockBegin + numbers + blockEnd + "after\n"; err != nil || string(got) != want {
			t.Errorf("the file is %q (%v)", got, err)
		}
	}
	for _, bad := range []string{"", blockBegin, blockEnd + blockBegin, blockBegin + blockEnd + blockBegin + blockEnd} {
		if _, err := replaceBlock(bad, "x"); err == nil {
			t.Errorf("%q has a block", bad)
		}
	}
}

func TestParseSizes(t *testing.T) {
	got, err := parseSizes("100, 10,100")
	if err != nil || len(got) != 2 || got[0] != 10 || got[1] != 100 {
		t.Errorf("the sizes are %v (%v)", got, err)
	}
	for _, bad := range []string{"", "0", "-1", "ten", "10,"} {
		if _, err := parseSizes(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// The providers of one command are added up, and the largest memory counts.
func TestUsageOfAllProviders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "usage")
	if _, err := takeUsage(file); err == nil {
		t.Error("a command whose provider left no record is taken")
	}
	for _, u := range []usage{{time.Second, 50}, {2 * time.Second, 70}, {time.Second, 60}} {
		if err := record(file, u); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := takeUsage(file); err != nil || got != (usage{4 * time.Second, 70}) {
		t.Errorf("the usage is %+v (%v)", got, err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the next command would count them again")
	}
}

func TestMedian(t *testing.T) {
	if got := median([]cost{{Wall: 9}, {Wall: 1}, {Wall: 3}}); got.Wall != 3 {
		t.Errorf("the median is %d", got.Wall)
	}
}

// What the caller's shell sets for the CLIs and the provider doesn't reach a run.
func TestCleanEnvironment(t *testing.T) {
	got := cleanEnvironment([]string{"PATH=/bin", "TF_LOG=TRACE", "TF_CLI_ARGS=x", "BETTERCOMPUTE_TIME_SCALE=0.1"})
	if len(got) != 1 || got[0] != "PATH=/bin" {
		t.Errorf("the environment is %q", got)
	}
}
