// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// summaryLength bounds a summary in bytes; the detail has the whole message.
const summaryLength = 110

// report adds an error to a response, each of joined ones by itself. The summary
// begins with the code; the detail is the message, what to do, and the facts of
// the cloud's answer. It points at the error's path where that is allowed (see
// [attributePath]). A nil error adds nothing.
func report(diags *diag.Diagnostics, err error) { reportAt(diags, nil, err) }

// reportAt is [report] for an error whose path is below at, or that has none.
func reportAt(diags *diag.Diagnostics, at backends.Path, err error) {
	for _, e := range separate(err) {
		d := describe(e)
		d.path = at.Join(d.path...)
		add(diags, diag.NewErrorDiagnostic(d.summary(), d.detail()), d.where())
	}
}

// reportWith is [report] with more for the reader, once: after the last error's own
// detail.
func reportWith(diags *diag.Diagnostics, err error, more string) {
	parts := separate(err)
	for i, e := range parts {
		d := describe(e)
		if i == len(parts)-1 {
			d.rest = append(d.rest, more)
		}
		add(diags, diag.NewErrorDiagnostic(d.summary(), d.detail()), d.where())
	}
}

// reportIssues reports validation issues, all of them.
func reportIssues(diags *diag.Diagnostics, issues []*backends.Error) {
	for _, issue := range issues {
		report(diags, issue)
	}
}

// warn adds an error as one warning: what follows from it as the summary, then the
// error, each of joined ones, then more for the reader. The summary begins with the
// code of the first error that has one; what isn't an error of ours or a cloud's,
// such as an interrupt, has none. A nil error adds nothing.
func warn(diags *diag.Diagnostics, err error, summary, more string) {
	parts := separate(err)
	if len(parts) == 0 {
		return
	}
	var paragraphs []string
	code, at := "", path.Empty()
	for _, e := range parts {
		d := describe(e)
		paragraphs = append(append(paragraphs, d.message), d.rest...)
		if code == "" && d.coded {
			code, at = d.code+": ", d.where()
		}
	}
	if more != "" {
		paragraphs = append(paragraphs, more)
	}
	add(diags, diag.NewWarningDiagnostic(code+summary, strings.Join(paragraphs, "\n\n")), at)
}

func add(diags *diag.Diagnostics, d diag.Diagnostic, at path.Path) {
	if at.Equal(path.Empty()) {
		diags.Append(d)
		return
	}
	diags.Append(diag.WithPath(at, d))
}

// separate are the errors that were joined, in order and without repeats.
func separate(err error) []error {
	if err == nil {
		return nil
	}
	// Only a join is taken apart: what wraps one error says something about it.
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			for _, f := range separate(e) {
				if !slices.ContainsFunc(out, func(o error) bool { return o.Error() == f.Error() }) {
					out = append(out, f)
				}
			}
		}
		return out
	}
	return []error{err}
}

// description is an error as a diagnostic shows it.
type description struct {
	code, message string
	coded         bool     // the code is the error's own, not what stands in for none
	rest          []string // what to do, and facts
	path          backends.Path
	harmless      bool // the text at path holds no secret
}

func (d description) where() path.Path {
	if name, ok := firstStep(d.path); ok && d.harmless {
		return path.Root(name)
	}
	return attributePath(d.path)
}

func firstStep(p backends.Path) (string, bool) {
	if len(p) == 0 {
		return "", false
	}
	name, ok := p[0].(string)
	return name, ok
}

func (d description) summary() string {
	line, _ := headline(d.message)
	return d.code + ": " + line
}

// detail doesn't say again what the summary has said in whole sentences.
func (d description) detail() string {
	line, whole := headline(d.message)
	message := d.message
	if whole {
		message = strings.TrimSpace(strings.TrimPrefix(message, line))
	}
	if message == "" {
		return strings.Join(d.rest, "\n\n")
	}
	return strings.Join(append([]string{message}, d.rest...), "\n\n")
}

func describe(err error) description {
	e := backends.AsError(err)
	coded := e != nil
	switch {
	case e != nil:
	case errors.Is(err, context.DeadlineExceeded):
		e = backends.Errorf(backends.ProviderError, "The operation took longer than its timeout.").
			WithRemedy("Run again; if the cloud is that slow, raise the resource's `timeouts`.")
	case errors.Is(err, context.Canceled):
		e = backends.Errorf(backends.ProviderError, "The operation was interrupted.").
			WithRemedy("Run again: it goes on where it ended.")
	default:
		e = backends.Errorf(backends.ProviderError, "%s", backends.WithoutUserinfo(err.Error()))
	}
	d := description{code: string(e.Code), message: located(e), path: e.Path, coded: coded}
	var uri *uriError
	d.harmless = errors.As(err, &uri) && uri.harmless
	d.message = backends.Shown(d.message) // what a cloud said may be in all of them
	if e.Remedy != "" {
		d.rest = append(d.rest, backends.Shown(e.Remedy))
	}
	if facts := describeDetails(e.Details); facts != "" {
		d.rest = append(d.rest, backends.Shown(facts))
	}
	return d
}

// located is the message of what is wrong with an input after the input's path, where
// that is inside an attribute: of what a diagnostic points at there, the CLIs show the
// resource's own line only.
func located(e *backends.Error) string {
	root, _ := firstStep(e.Path)
	ours := e.Code == backends.InvalidInput || e.Code == backends.InvalidConfig
	at := e.Path.String()
	if !ours || len(e.Path) < 2 || printable[root] || strings.Contains(e.Message, at) {
		return e.Message
	}
	if rest, ok := strings.CutPrefix(e.Message, e.Path[len(e.Path)-1:].String()+" "); ok {
		return at + " " + rest
	}
	return at + ": " + e.Message
}

// headline is a message's first sentence, whole where it fits. A longer one loses
// what is in parentheses, such as an object's long id; if that isn't enough, it ends
// where its main part does: before the last colon, semicolon or parenthesis that
// leaves it short enough. One without any is cut at a word, with an ellipsis.
func headline(message string) (line string, whole bool) {
	line, _, _ = strings.Cut(message, "\n")
	line = line[:firstSentence(line)]
	if len(line) <= summaryLength {
		return line, true
	}
	if short := withoutAsides(line); len(short) <= summaryLength {
		return short, false
	}
	if end := mainPart(line); end > 0 {
		return line[:end], false
	}
	cut := strings.LastIndexByte(line[:summaryLength], ' ')
	if cut <= 0 {
		return strings.ToValidUTF8(line[:summaryLength], "") + "…", false
	}
	return strings.TrimRight(line[:cut], ",;:") + "…", false
}

// withoutAsides is a line without what is in parentheses, which are outside quotes
// and have a space before them.
func withoutAsides(line string) string {
	var b strings.Builder
	depth, quoted := 0, false
	for i := range len(line) {
		c := line[i]
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case strings.HasPrefix(line[i:], " ("):
			continue // the space goes too
		case c == '(' && i > 0 && (depth > 0 || line[i-1] == ' '):
			depth++
		case c == ')' && depth > 0:
			depth--
			continue
		}
		if depth == 0 {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// firstSentence is where a line's first sentence ends: at a full stop before a word
// that begins with a capital letter, so not at those of "the characters . _ : -".
func firstSentence(line string) int {
	for i := 0; ; {
		next := strings.Index(line[i:], ". ")
		if next < 0 {
			return len(line)
		}
		i += next + 2
		if r, _ := utf8.DecodeRuneInString(line[i:]); unicode.IsUpper(r) {
			return i - 1
		}
	}
}

// mainPart is where the longest part of a line ends that fits a summary and stands
// by itself; 0 when there is none. One word, such as an attribute's name before a
// colon, says nothing by itself, and what is quoted or in parentheses isn't taken
// apart.
func mainPart(line string) (end int) {
	depth, quoted := 0, false
	for i := range min(summaryLength+1, len(line)-1) {
		if !quoted && depth == 0 && i > 0 {
			switch line[i : i+2] {
			case ": ", "; ", " (":
				if strings.Contains(line[:i], " ") {
					end = i
				}
			}
		}
		switch line[i] {
		case '"':
			quoted = !quoted
		case '(':
			depth++
		case ')':
			depth--
		}
	}
	return end
}

// describeDetails are an error's facts on one line: status, code and correlation
// id first, as support people ask for them.
func describeDetails(details map[string]any) string {
	first := []string{"status", "code", "correlation_id"}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(details)), func(n string) bool { return slices.Contains(first, n) })
	var facts []string
	for _, name := range append(first, names...) {
		if value, ok := details[name]; ok && value != nil && value != "" {
			if list, ok := value.([]string); ok {
				value = strings.Join(list, ", ")
			}
			facts = append(facts, fmt.Sprintf("%s: %v", strings.ReplaceAll(name, "_", " "), value))
		}
	}
	if len(facts) == 0 {
		return ""
	}
	return "(" + strings.Join(facts, "; ") + ")"
}

// joinIssues makes one error of validation issues.
func joinIssues(issues []*backends.Error) error {
	list := make([]error, len(issues))
	for i, issue := range issues {
		list[i] = issue
	}
	return errors.Join(list...)
}

// uriError is what is wrong with a uri that stands in an attribute.
type uriError struct {
	err      *backends.Error
	harmless bool // the text can hold neither a secret nor a password
}

// Error is the error's own text.
func (e *uriError) Error() string { return e.err.Error() }

// Unwrap is the error in the contract's terms.
func (e *uriError) Unwrap() error { return e.err }

// inAttribute says which attribute a bad uri stands in. A diagnostic points there
// only when the text can't hold a secret or a password: what has a query or an @
// may.
func inAttribute(name, text string, err error) error {
	e := backends.AsError(err)
	if e == nil {
		return err
	}
	out := *e
	out.Message = name + ": " + e.Message
	out.Path = backends.Path{name}
	return &uriError{err: &out, harmless: !strings.ContainsAny(text, "?@")}
}
