// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package recording records the requests of a conformance run in a file, without
// any credential, and plays them back without a network.
//
// The file is a cassette of go-vcr (https://github.com/dnaeon/go-vcr), which also
// records; playing back is our own, since a run polls: see [Player].
package recording

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"

	"gopkg.in/dnaeon/go-vcr.v4/pkg/cassette"
	"gopkg.in/dnaeon/go-vcr.v4/pkg/recorder"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/conformance"
)

// caseHeader holds in a recording the name of the case that a request is of. It is
// never sent.
const caseHeader = "Conformance-Case"

// Recorder is a transport that records what it carries. Nothing is written before
// [Recorder.Save], and then without credentials.
type Recorder struct {
	recorder   *recorder.Recorder
	clean      *cleaner
	unanswered atomic.Int64
}

// NewRecorder makes a recorder that carries requests by base. It fails when the
// file can't be written, before a long run finds out.
func NewRecorder(file string, base http.RoundTripper) (*Recorder, error) {
	probe, err := os.CreateTemp(filepath.Dir(file), ".conformance-*")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, err
	}
	r := &Recorder{clean: &cleaner{}}
	r.recorder, err = recorder.New("cassette",
		recorder.WithMode(recorder.ModeRecordOnly),
		recorder.WithRealTransport(stripping{base}),
		recorder.WithSkipRequestLatency(true), // else it waits once more as long as the cloud did
		recorder.WithHook(r.clean.interaction, recorder.BeforeSaveHook),
		recorder.WithFS(oneFile(file)),
		recorder.WithDebugWriter(silent{}),
	)
	return r, err
}

// silent keeps go-vcr from obeying VCR_DEBUG, which would print every request with
// its credentials; it does for [io.Discard].
type silent struct{}

func (silent) Write(b []byte) (int, error) { return len(b), nil }

// Secrets are secrets whose values the recording must not hold, wherever the cloud
// may have repeated them.
func (r *Recorder) Secrets(secrets backends.Secrets) backends.Secrets {
	return &watching{secrets, r.clean}
}

// RoundTrip implements [http.RoundTripper].
func (r *Recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	marked := request.Clone(request.Context())
	marked.Header.Set(caseHeader, conformance.CaseOf(request.Context()))
	answer, err := r.recorder.RoundTrip(marked)
	if err != nil {
		r.unanswered.Add(1)
	}
	return answer, err
}

// Unanswered is how many requests got no answer: a recording can't hold those.
func (r *Recorder) Unanswered() int { return int(r.unanswered.Load()) }

// Save writes the file, whole or not at all, readable by its owner only.
func (r *Recorder) Save() error { return r.recorder.Stop() }

// stripping takes the mark of the case off again.
type stripping struct{ base http.RoundTripper }

func (s stripping) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del(caseHeader)
	return s.base.RoundTrip(r)
}

// oneFile is a file system with one file, whatever name it is asked for: go-vcr
// adds an extension of its own.
type oneFile string

var _ cassette.FS = oneFile("")

func (f oneFile) ReadFile(string) ([]byte, error) { return os.ReadFile(string(f)) }

func (f oneFile) IsFileExists(string) bool {
	_, err := os.Stat(string(f))
	return err == nil
}

func (f oneFile) WriteFile(_ string, data []byte) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(string(f)), ".conformance-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temporary.Name()))
		}
	}()
	_, err = temporary.Write(data)
	if err := errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), string(f))
}
