// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// sftpTime bounds connecting to an SSH server and the transfer of a VM's files.
const sftpTime = 30 * time.Second

// sftpAtOnce bounds the connections to one host: sshd by default refuses some of
// those that come while ten others log in (MaxStartups in sshd_config).
const sftpAtOnce = 4

// sftpMost bounds what a host says in one connection, in bytes: a folder of a hundred
// thousand files is less.
const sftpMost = 32 << 20

// boundedConn is a connection that ends when the host has said too much.
type boundedConn struct {
	net.Conn
	left int
}

var errTalkative = errors.New("the host sends more than a folder of snippets can be")

// Read implements [io.Reader]. One goroutine of the SSH library reads.
func (c *boundedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTalkative
	}
	n, err := c.Conn.Read(p)
	c.left -= n
	return n, err
}

// sftpStore is a folder on a host, over SSH. It connects for each VM's files: they are
// small and few, and a connection that idles for an hour is none.
type sftpStore struct {
	host, user, path       string
	privateKey, knownHosts string
	secrets                backends.Secrets
	connections            chan struct{} // holds one token for each
}

func newSFTPStore(config backends.Values, secrets backends.Secrets) *sftpStore {
	host := config.String("host")
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), "22")
	}
	return &sftpStore{
		host: host, user: config.String("user"), path: config.String("path"),
		privateKey: config.String("private_key"), knownHosts: config.String("known_hosts"), secrets: secrets,
		connections: make(chan struct{}, sftpAtOnce),
	}
}

func checkKnownHosts(s string) string {
	if isReference(s) || len(hostKeys(s)) > 0 {
		return ""
	}
	return "It holds no host key: write lines of a known_hosts file, or a key such as ssh-ed25519 AAAA…, or a reference to either."
}

// hostKeys are the keys of a text: lines of a known_hosts file or bare keys. Which
// hosts a line names doesn't matter: all of them are this one's.
func hostKeys(text string) []ssh.PublicKey {
	var out []ssh.PublicKey
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "@") {
			continue // @cert-authority and @revoked aren't keys of the host
		}
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)); err == nil {
			out = append(out, key)
			continue
		}
		if _, _, key, _, _, err := ssh.ParseKnownHosts([]byte(line)); err == nil {
			out = append(out, key)
		}
	}
	return out
}

func (s *sftpStore) write(ctx context.Context, files []snippet) error {
	return s.do(ctx, "written", fileNames(files), func(client *sftp.Client) error {
		for _, f := range files {
			if err := s.writeOne(client, f); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *sftpStore) writeOne(client *sftp.Client, file snippet) error {
	temporary := path.Join(s.path, "."+file.name+partSuffix)
	f, err := client.Create(temporary)
	if err != nil {
		return err
	}
	if err = f.Chmod(snippetMode); err == nil {
		_, err = f.ReadFrom(bytes.NewReader(file.content))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = client.Remove(temporary)
		return err
	}
	target := path.Join(s.path, file.name)
	if err := client.PosixRename(temporary, target); err == nil {
		return nil
	}
	// Not every server has the extension; a plain rename replaces nothing.
	_ = client.Remove(target)
	return client.Rename(temporary, target)
}

func (s *sftpStore) read(ctx context.Context, names []string) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := s.do(ctx, "read", names, func(client *sftp.Client) error {
		for _, name := range names {
			content, err := readFile(client, path.Join(s.path, name))
			if err != nil {
				return err
			}
			out[name] = content
		}
		return nil
	})
	return out, err
}

// readFile reads a file that is no longer than a snippet may be.
func readFile(client *sftp.Client, name string) ([]byte, error) {
	f, err := client.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxSnippet))
	return content, errors.Join(err, f.Close())
}

func (s *sftpStore) sweep(ctx context.Context, prefix string, keep []string) error {
	return s.do(ctx, "removed", []string{prefix + "…"}, func(client *sftp.Client) error {
		entries, err := client.ReadDirContext(ctx, s.path)
		if err != nil {
			return err
		}
		var failed error
		for _, e := range entries {
			if !swept(e.Name(), prefix, keep) {
				continue
			}
			if err := client.Remove(path.Join(s.path, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = errors.Join(failed, err)
			}
		}
		return failed
	})
}

// do connects and does something with files of the folder, again where a connection is
// dropped. done is a word for messages.
func (s *sftpStore) do(ctx context.Context, done string, files []string, work func(*sftp.Client) error) error {
	return backends.Retry(ctx, backends.Idempotent, func(ctx context.Context) error {
		select {
		case s.connections <- struct{}{}:
			defer func() { <-s.connections }()
			return s.try(ctx, done, strings.Join(files, " and "), work)
		case <-backends.Caller(ctx).Done():
			return context.Cause(backends.Caller(ctx))
		}
	})
}

func (s *sftpStore) try(ctx context.Context, done, name string, work func(*sftp.Client) error) error {
	config, err := s.config(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sftpTime)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.host)
	if err != nil {
		return s.failure(done, name, err, true)
	}
	connection = &boundedConn{connection, sftpMost}
	// The libraries know no context: at its end the connection is closed under them.
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	defer func() { _ = connection.Close() }()
	talk, channels, requests, err := ssh.NewClientConn(connection, s.host, config)
	if err != nil {
		return s.failure(done, name, err, false)
	}
	client := ssh.NewClient(talk, channels, requests)
	defer func() { _ = client.Close() }()
	files, err := sftp.NewClient(client)
	if err == nil {
		defer func() { _ = files.Close() }()
		err = work(files)
	}
	if err != nil {
		return s.failure(done, name, err, false)
	}
	return nil
}

// config resolves the credentials for one connection.
func (s *sftpStore) config(ctx context.Context) (*ssh.ClientConfig, error) {
	known := s.knownHosts
	if isReference(known) {
		resolved, err := s.secrets.Resolve(ctx, known)
		if err != nil {
			return nil, err
		}
		known = resolved
	}
	keys := hostKeys(known)
	if len(keys) == 0 {
		return nil, backends.Errorf(backends.InvalidConfig, "What snippets.sftp.known_hosts refers to holds no host key.").
			At(attribute, "snippets", "sftp", "known_hosts")
	}
	private, err := s.secrets.Resolve(ctx, s.privateKey)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey([]byte(private))
	if err != nil {
		// Its text may hold part of the key.
		return nil, backends.Errorf(backends.InvalidConfig, "What snippets.sftp.private_key refers to is no private key without a passphrase.").
			At(attribute, "snippets", "sftp", "private_key")
	}
	return &ssh.ClientConfig{
		User: s.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, Timeout: sftpTime,
		HostKeyAlgorithms: algorithmsOf(keys),
		HostKeyCallback: func(_ string, _ net.Addr, shown ssh.PublicKey) error {
			if !slices.ContainsFunc(keys, func(k ssh.PublicKey) bool { return bytes.Equal(k.Marshal(), shown.Marshal()) }) {
				return errHostKey
			}
			return nil
		},
	}, nil
}

// algorithmsOf are those by which a host proves one of the keys: else it may show
// another of its keys, which isn't known here.
func algorithmsOf(keys []ssh.PublicKey) []string {
	var out []string
	for _, k := range keys {
		if k.Type() == ssh.KeyAlgoRSA {
			out = append(out, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			continue
		}
		out = append(out, k.Type())
	}
	return out
}

var errHostKey = errors.New("the host shows another key than those of known_hosts")

func (s *sftpStore) failure(done, name string, err error, unreached bool) error {
	e := backends.Errorf(backends.ProviderError, "The snippet %s can't be %s on %s: %s.", name, done, s.host,
		strings.TrimRight(backends.Printable(fmt.Sprint(err)), ". "))
	e.Err = err
	switch {
	case errors.Is(err, errHostKey):
		e.Remedy = "Someone may be in between. If the host has a new key, set the account's snippets.sftp.known_hosts to it."
	case unreached:
		e.Reason = backends.ReasonUnreachable
		e.Remedy = "Check the account's snippets.sftp.host."
	case isDropped(err):
		e.Reason, e.Retryable = backends.ReasonUnreachable, true
		e.Remedy = "The host ends the connection: see its SSH server's log."
	default:
		e.Remedy = "Check the account's snippets.sftp: the user, its key, and whether the path can be written to."
	}
	return e
}

// isDropped tells whether a connection ended that had been made: the host has too
// many, or the way to it is bad.
func isDropped(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.EOF) || errors.Is(err, sftp.ErrSSHFxConnectionLost)
}
