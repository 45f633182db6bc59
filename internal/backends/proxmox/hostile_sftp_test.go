// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/sftptest"
)

// A host that is no SSH server, or one that means ill: the end is an error, no later
// than the operation's.
func TestHostileSFTPHosts(t *testing.T) {
	keys := sftptest.New(t, "")
	for name, talk := range map[string]func(net.Conn){
		"says nothing":      func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"hangs up":          func(net.Conn) {},
		"never ends a line": func(c net.Conn) { flood(c, "S") },
		"sends lines":       func(c net.Conn) { flood(c, "\x1b[31mhello\r\n") },
		"speaks HTTP":       func(c net.Conn) { flood(c, "HTTP/1.1 400 Bad Request\r\nX: \x1b[31m\r\n\r\n") },
		"sends packets of 4 GiB": func(c net.Conn) {
			_, _ = io.WriteString(c, "SSH-2.0-x\r\n")
			flood(c, "\xff\xff\xff\xff")
		},
		"sends empty packets": func(c net.Conn) {
			_, _ = io.WriteString(c, "SSH-2.0-x\r\n")
			flood(c, "\x00\x00\x00\x0c\x0a\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
		},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					defer func() { _ = c.Close() }()
					talk(c)
				}()
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		store := sftpStoreOf(keys, backends.Values{"host": listener.Addr().String()})
		err = store.write(ctx, oneFile("x.yaml", "x"))
		cancel()
		_ = listener.Close()
		<-ended
		e := backends.AsError(err)
		if e == nil || e.Code != backends.ProviderError || strings.ContainsFunc(e.Error()+e.Remedy, unicode.IsControl) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func flood(c net.Conn, unit string) {
	text := strings.Repeat(unit, 1000)
	for {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

// talkative is a connection on which the host never stops.
type talkative struct{ net.Conn }

func (talkative) Read(p []byte) (int, error) { return len(p), nil }

func TestSFTPConnectionsAreBounded(t *testing.T) {
	n, err := io.Copy(io.Discard, &boundedConn{talkative{}, sftpMost})
	if !errors.Is(err, errTalkative) || n < sftpMost || n > sftpMost+1<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}
