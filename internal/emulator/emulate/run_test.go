// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulate

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestRun starts the command on free ports, uses what it prints, holds a call,
// and ends it.
func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := Run(ctx, []string{"-hetzner", "127.0.0.1:0", "-control", "localhost:0", "-boot", "1ms", "-state", t.TempDir() + "/state.json", "-project", "secret-token=one"}, writer, io.Discard)
		_ = writer.Close()
		ended <- err
	}()
	var printed strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(printed.String(), "Ctrl-C") {
		n, err := reader.Read(buffer)
		printed.Write(buffer[:n])
		if err != nil {
			t.Fatalf("ended early: %v, after %s", <-ended, &printed)
		}
	}
	text := printed.String()
	control := regexp.MustCompile(`Control API at (http://\S+)`).FindStringSubmatch(text)
	account := regexp.MustCompile(`hetzner_cloud = \{ token = "env://HCLOUD_TOKEN", endpoint = "(http://127\.0\.0\.1:[1-9]\d*/v1)" \}`).FindStringSubmatch(text)
	if control == nil || account == nil || !strings.Contains(text, "export HCLOUD_TOKEN=") || strings.Contains(text, "secret-token") {
		t.Fatalf("printed %s", text)
	}
	get := func(method, address, body string) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		request.Header.Set("Authorization", "Bearer secret-token")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	if status, err := get("GET", account[1]+"/servers", ""); status != 200 || err != nil {
		t.Errorf("servers: %d %v", status, err)
	}
	if status, err := get("POST", control[1]+"/faults", `{"service":"hetzner","kind":"hold"}`); status != 201 || err != nil {
		t.Errorf("fault: %d %v", status, err)
	}
	held := make(chan error, 1)
	go func() {
		_, err := get("POST", account[1]+"/servers", "{}")
		held <- err
	}()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if err := <-held; err == nil {
		t.Error("the held call was answered")
	}
}

func TestBadArguments(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-hetzner", "0.0.0.0:0"}, "not a loopback address"},
		{[]string{"-hetzner", "127.0.0.1:0", "-control", "example.com:80"}, "not a loopback address"},
		{[]string{"-boot", "-1s", "-rate-limit", "-1", "-latency", "-1s"}, "-rate-limit must not be negative"},
		{[]string{"-project", "x"}, "TOKEN=NAME"},
		{[]string{"now"}, `unexpected argument "now"`},
		{[]string{"-nonsense"}, "nonsense"},
	} {
		var stderr bytes.Buffer
		if err := Run(t.Context(), test.args, io.Discard, &stderr); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v", test.args, err)
		}
	}
	var stderr bytes.Buffer
	if err := Run(t.Context(), []string{"-h"}, io.Discard, &stderr); err != nil || !strings.Contains(stderr.String(), "-rate-limit calls") {
		t.Errorf("-h: %v %s", err, &stderr)
	}
}
