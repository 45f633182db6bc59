// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path"
	"strings"

	"github.com/pkg/sftp"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// probeName is that of the file that a probe writes and takes away: with a dot in
// front, as what Proxmox VE lists never has, and another one each time.
func probeName() string {
	return ".better-compute-probe-" + strings.ToLower(rand.Text()) + partSuffix
}

func (d directoryStore) probe(context.Context) error {
	f, err := os.CreateTemp(string(d), probeName())
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	return d.failure("written", "for user data", err)
}

func (s *sftpStore) probe(ctx context.Context) error {
	return s.do(ctx, "written", []string{"for user data"}, func(client *sftp.Client) error {
		name := path.Join(s.path, probeName())
		f, err := client.Create(name)
		if err != nil {
			return err
		}
		return errors.Join(f.Close(), client.Remove(name))
	})
}

// checkFolder tells in a plan whether the account's folder is here: looking at it
// costs nothing. A host is asked before the clone.
func (c *Client) checkFolder() *backends.Error {
	directory, ok := c.snippets.(directoryStore)
	if !ok {
		return nil
	}
	switch info, err := os.Stat(string(directory)); {
	case err != nil:
		return backends.AsError(directory.failure("written", "for user data", err))
	case !info.IsDir():
		return backends.Errorf(backends.InvalidConfig, "The account's snippets.directory, %s, is no folder.", string(directory))
	}
	return nil
}
