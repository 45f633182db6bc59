// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"crypto/md5" // #nosec G501 -- the API's fingerprints are MD5
	"encoding/hex"
	"strings"

	"golang.org/x/crypto/ssh"
)

type sshKey struct {
	object
	PublicKey   string `json:"public_key"`
	Fingerprint string `json:"fingerprint"`
}

func (k *sshKey) wire() wireSSHKey {
	return wireSSHKey{
		ID: k.ID, Name: k.Name, Fingerprint: k.Fingerprint, PublicKey: k.PublicKey,
		Labels: k.Labels, Created: stamp(k.Created),
	}
}

// fingerprint is the MD5 of a key in OpenSSH's form, with colons.
func fingerprint(publicKey string) (string, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(publicKey))
	if err != nil {
		return "", err
	}
	sum := md5.Sum(key.Marshal()) // #nosec G401 -- as above
	pairs := make([]string, len(sum))
	for i := range sum {
		pairs[i] = hex.EncodeToString(sum[i : i+1])
	}
	return strings.Join(pairs, ":"), nil
}

func (c *call) findSSHKey(reference idOrName) *sshKey {
	for _, key := range byID(c.p.SSHKeys) {
		if reference.is(key.ID, key.Name) {
			return key
		}
	}
	return nil
}

func listSSHKeys(c *call) (any, error) {
	all := rows(c.p.SSHKeys, func(k *sshKey) any { return k.wire() })
	all = c.oneOf("fingerprint", all, func(r row) string { return c.p.SSHKeys[r.ID].Fingerprint })
	return c.list("ssh_keys", all, "id", "name", "created")
}

func createSSHKey(c *call) (any, error) {
	var request struct {
		Name      string            `json:"name"`
		PublicKey string            `json:"public_key"`
		Labels    map[string]string `json:"labels"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	var problems fields
	anyName(&problems, request.Name)
	checkLabels(&problems, request.Labels)
	sum, err := fingerprint(request.PublicKey)
	if err != nil {
		problems.add("public_key", "must be a public key in OpenSSH format")
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	if nameTaken(c.p.SSHKeys)(request.Name) {
		return nil, notUnique("SSH key", "name")
	}
	for _, key := range c.p.SSHKeys {
		if key.Fingerprint == sum {
			return nil, notUnique("SSH key", "fingerprint")
		}
	}
	key := &sshKey{object: c.newObject(request.Name, request.Labels), PublicKey: request.PublicKey, Fingerprint: sum}
	c.p.SSHKeys[key.ID] = key
	return map[string]any{"ssh_key": key.wire()}, nil
}

func getSSHKey(c *call) (any, error) {
	key, err := get(c, "SSH key", c.p.SSHKeys)
	if err != nil {
		return nil, err
	}
	return map[string]any{"ssh_key": key.wire()}, nil
}

func updateSSHKey(c *call) (any, error) {
	key, err := get(c, "SSH key", c.p.SSHKeys)
	if err != nil {
		return nil, err
	}
	if err := c.update("SSH key", &key.object, nameTaken(c.p.SSHKeys), anyName); err != nil {
		return nil, err
	}
	return map[string]any{"ssh_key": key.wire()}, nil
}

func deleteSSHKey(c *call) (any, error) {
	key, err := get(c, "SSH key", c.p.SSHKeys)
	if err != nil {
		return nil, err
	}
	delete(c.p.SSHKeys, key.ID)
	return noContent(nil)
}
