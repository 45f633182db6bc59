// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package examples_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// summaryArgument is where, among a call's arguments, the summary of a warning
// stands.
var summaryArgument = map[string]int{
	"AddWarning":           0, // summary, detail
	"AddAttributeWarning":  1, // path, summary, detail
	"NewWarningDiagnostic": 0, // summary, detail
	"warn":                 2, // diagnostics, error, summary, more
}

// TestWarningsAreExplained: who meets a warning finds it in the guide, by the words
// that the CLI shows.
func TestWarningsAreExplained(t *testing.T) {
	guide := strings.ToLower(read(t, filepath.Join(root, "templates", "guides", "errors.md")))
	summaries := warningSummaries(t)
	const fewest = 10
	if len(summaries) < fewest {
		t.Fatalf("only %d warnings were found: the test looks in the wrong place", len(summaries))
	}
	for summary, where := range summaries {
		if !strings.Contains(guide, "**"+strings.ToLower(summary)) {
			t.Errorf("%s: the guide to errors and warnings lacks %q", where, summary)
		}
	}
}

// warningSummaries are the summaries of the provider's warnings, without codes and
// full stops, and where each stands. One that goes on with an object's name ends
// before it.
func warningSummaries(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "internal", "provider", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	fset := token.NewFileSet()
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			i, ok := summaryArgument[called(call)]
			if !ok || len(call.Args) <= i {
				return true
			}
			if summary := cleanSummary(lastLiteral(call.Args[i])); summary != "" {
				out[summary] = fset.Position(call.Pos()).String()
			}
			return true
		})
	}
	return out
}

// called is the name of the function or method that a call calls.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	default:
		return ""
	}
}

// lastLiteral is the last text in an expression such as "The " + kind + " is gone";
// of a call of Sprintf it is the format.
func lastLiteral(e ast.Expr) string {
	if call, ok := e.(*ast.CallExpr); ok && called(call) == "Sprintf" && len(call.Args) > 0 {
		e = call.Args[0]
	}
	var last string
	ast.Inspect(e, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				last = text
			}
		}
		return true
	})
	return last
}

// cleanSummary takes the code, the object's name, and what joins a text to the one
// before it, off.
func cleanSummary(summary string) string {
	if code, rest, ok := strings.Cut(summary, ": "); ok && code == strings.ToUpper(code) {
		summary = rest
	}
	summary, _, _ = strings.Cut(summary, ": %q")
	return strings.TrimPrefix(strings.Trim(summary, " .:"), "was ")
}
