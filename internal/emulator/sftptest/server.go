// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package sftptest is an SFTP server for tests: over SSH on a loopback port, with a
// host key and a user key of its own, and with a folder from which no path leads
// out. It lets in that one user with that one key, as a node of a cluster would
// that files are put on.
package sftptest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// User is the name that the server lets in.
const User = "snippets"

// Server is a running server. It ends with its test.
type Server struct {
	// Address is its host and port.
	Address string
	// Folder is what it serves, as "/".
	Folder string
	// KnownHosts is its line of a known_hosts file.
	KnownHosts string
	// PrivateKey is the user's key, in OpenSSH's form.
	PrivateKey string

	config  *ssh.ServerConfig
	root    *os.Root
	working sync.WaitGroup

	// mu guards what follows.
	mu          sync.Mutex
	connections []net.Conn
	calls       []string
	failing     map[string]error
	// made counts connections, entering those that log in, most how many of those there
	// were at once.
	made, entering, most int
	refusals             int
}

// New starts a server for a folder, or for an empty one of its own when that isn't
// given.
func New(t testing.TB, folder string) *Server {
	t.Helper()
	if folder == "" {
		folder = t.TempDir()
	}
	s := &Server{Folder: folder, failing: map[string]error{}}
	listener, err := s.start(t)
	if err != nil {
		t.Fatal(err)
	}
	s.working.Go(func() { s.accept(listener) })
	t.Cleanup(func() {
		_ = listener.Close()
		s.Drop()
		s.working.Wait()
		_ = s.root.Close()
	})
	return s
}

func (s *Server) start(t testing.TB) (net.Listener, error) {
	hostKey, err := newSigner()
	if err != nil {
		return nil, err
	}
	_, userKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	user, err := ssh.NewSignerFromKey(userKey)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(userKey, User)
	if err != nil {
		return nil, err
	}
	s.PrivateKey = string(pem.EncodeToMemory(block))
	s.config = &ssh.ServerConfig{
		PublicKeyCallback: func(connection ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if connection.User() != User || !slices.Equal(key.Marshal(), user.PublicKey().Marshal()) {
				return nil, errors.New("not that user with that key")
			}
			return &ssh.Permissions{}, nil
		},
	}
	s.config.AddHostKey(hostKey)
	if s.root, err = os.OpenRoot(s.Folder); err != nil {
		return nil, err
	}
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, s.root.Close())
	}
	s.Address = listener.Addr().String()
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return nil, errors.Join(err, listener.Close(), s.root.Close())
	}
	s.KnownHosts = fmt.Sprintf("[%s]:%s %s", host, port, ssh.MarshalAuthorizedKey(hostKey.PublicKey()))
	return listener, nil
}

func newSigner() (ssh.Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(key)
}

// Calls returns what was asked for since the start, such as "Put /a.yaml".
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Fail lets calls of one kind ("Put", "Remove", "Rename", …) fail with an error, such
// as sftp.ErrSSHFxPermissionDenied, or with nil work again.
func (s *Server) Fail(kind string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing[kind] = err
}

// Refuse lets the next n connections end before a word is said, as a server does that
// has too many.
func (s *Server) Refuse(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = n
}

// Connections returns how many there were since the start, and how many of them were
// logging in at the same time at most, which is what servers bound.
func (s *Server) Connections() (made, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made, s.most
}

// enter counts a connection, and tells whether it is served.
func (s *Server) enter(connection net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections = append(s.connections, connection)
	s.made++
	if s.refusals > 0 {
		s.refusals--
		return false
	}
	s.entering++
	s.most = max(s.most, s.entering)
	return true
}

// entered says that a connection has logged in, or failed to.
func (s *Server) entered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entering--
}

// Drop ends all connections.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, connection := range s.connections {
		_ = connection.Close()
	}
	s.connections = nil
}

// call notes a call, and is how it fails where it is to.
func (s *Server) call(kind, path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, kind+" "+path)
	return s.failing[kind]
}

func (s *Server) accept(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		served := s.enter(connection)
		s.working.Go(func() {
			defer func() { _ = connection.Close() }()
			if served {
				s.serve(connection)
			}
		})
	}
}

// serve serves one connection to its end, whatever that is: the client sees it.
func (s *Server) serve(connection net.Conn) {
	server, channels, requests, err := ssh.NewServerConn(connection, s.config)
	s.entered()
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	s.working.Go(func() { ssh.DiscardRequests(requests) })
	for channel := range channels {
		if channel.ChannelType() != "session" {
			_ = channel.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		session, requests, err := channel.Accept()
		if err != nil {
			return
		}
		s.working.Go(func() { s.session(session, requests) })
	}
}

// session starts the subsystem sftp, and nothing else.
func (s *Server) session(session ssh.Channel, requests <-chan *ssh.Request) {
	defer func() { _ = session.Close() }()
	for request := range requests {
		isSFTP := request.Type == "subsystem" && string(request.Payload) == "\x00\x00\x00\x04sftp"
		if err := request.Reply(isSFTP, nil); err != nil || !isSFTP {
			continue
		}
		s.working.Go(func() { ssh.DiscardRequests(requests) })
		server := sftp.NewRequestServer(session, sftp.Handlers{FileGet: files{s}, FilePut: files{s}, FileCmd: files{s}, FileList: files{s}})
		if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
			return
		}
		return
	}
}
