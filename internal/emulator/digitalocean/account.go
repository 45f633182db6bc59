// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"crypto/md5" //nolint:gosec // A key's fingerprint in this API is MD5; nothing rests on it.
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
)

// sshKey is a public key of the account.
type sshKey struct {
	object
	ID          int64  `json:"id"`
	Name        string `json:"name"`
	PublicKey   string `json:"public_key"`
	Fingerprint string `json:"fingerprint"`
}

func accountRoutes() []route {
	return []route{
		{"GET", "/account", http.StatusOK, getAccount},
		{"GET", "/account/keys", http.StatusOK, listKeys},
		{"POST", "/account/keys", http.StatusCreated, createKey},
		{"GET", "/account/keys/{id}", http.StatusOK, getKey},
		{"PUT", "/account/keys/{id}", http.StatusOK, updateKey},
		{"DELETE", "/account/keys/{id}", http.StatusNoContent, deleteKey},
	}
}

// usualDroplets is the limit that is reported when there is none: a limit of 0
// would mean that nothing can be made.
const usualDroplets = 10_000

func getAccount(c *call) (any, error) {
	droplets := c.s.options.DropletLimit
	if droplets == 0 {
		droplets = usualDroplets
	}
	return map[string]any{"account": map[string]any{
		"droplet_limit":     droplets,
		"floating_ip_limit": 3,
		"reserved_ip_limit": 3,
		// 0 is no limit here.
		"volume_limit":   c.s.options.VolumeLimit,
		"email":          "someone@example.com",
		"name":           "Someone",
		"uuid":           "b6fr89dbf6d9156cace5f3c78dc9851d957381ef",
		"email_verified": true,
		"status":         "active",
		"status_message": "",
		"team":           map[string]any{"uuid": "5df3e3004a17e242b7c20ca6c9fc25b701a47ece", "name": "My Team"},
	}}, nil
}

func (k *sshKey) wire() wireKey {
	return wireKey{ID: k.ID, Fingerprint: k.Fingerprint, PublicKey: k.PublicKey, Name: k.Name}
}

// findKey finds a key by its id or fingerprint; nil: there is none.
func (p *project) findKey(reference text) *sshKey {
	for _, k := range p.SSHKeys {
		if k.ID == reference.number() || k.Fingerprint == string(reference) {
			return k
		}
	}
	return nil
}

// fingerprint is the MD5 of a key in the OpenSSH form; empty: it is no such key.
func fingerprint(publicKey string) string {
	parts := strings.Fields(publicKey)
	if len(parts) < 2 {
		return ""
	}
	blob, err := base64.StdEncoding.DecodeString(parts[1])
	if err != nil || len(blob) == 0 {
		return ""
	}
	sum := md5.Sum(blob) //nolint:gosec // As above.
	text := make([]string, len(sum))
	for i, b := range sum {
		text[i] = hex.EncodeToString([]byte{b})
	}
	return strings.Join(text, ":")
}

func listKeys(c *call) (any, error) {
	return list(c, "ssh_keys", visible(c, byID(c.p.SSHKeys)), func(k *sshKey) any { return k.wire() })
}

func createKey(c *call) (any, error) {
	var request struct {
		Name      string `json:"name"`
		PublicKey string `json:"public_key"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	mark := fingerprint(request.PublicKey)
	switch {
	case request.Name == "":
		return nil, unprocessable("Name can't be blank")
	case mark == "":
		return nil, unprocessable("Key invalid, key should be of the format `type key [comment]`")
	case c.p.findKey(text(mark)) != nil:
		return nil, unprocessable("SSH Key is already in use on your account")
	}
	k := &sshKey{object: c.newObject(nil), ID: next(&c.s.store.NextKey), Name: request.Name, PublicKey: request.PublicKey, Fingerprint: mark}
	c.p.SSHKeys[k.ID] = k
	return map[string]any{"ssh_key": k.wire()}, nil
}

// key finds the key of the path.
func (c *call) key() (*sshKey, error) {
	k := c.p.findKey(text(c.id()))
	if k == nil || c.missing(&k.object) {
		return nil, notFound()
	}
	return k, nil
}

func getKey(c *call) (any, error) {
	k, err := c.key()
	if err != nil {
		return nil, err
	}
	return map[string]any{"ssh_key": k.wire()}, nil
}

func updateKey(c *call) (any, error) {
	k, err := c.key()
	if err != nil {
		return nil, err
	}
	var request struct {
		Name string `json:"name"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if request.Name == "" {
		return nil, unprocessable("Name can't be blank")
	}
	k.Name = request.Name
	return map[string]any{"ssh_key": k.wire()}, nil
}

func deleteKey(c *call) (any, error) {
	k, err := c.key()
	if err != nil {
		return nil, err
	}
	delete(c.p.SSHKeys, k.ID)
	return nil, nil
}

// findKeys resolves the keys of a request, or names those that don't exist.
func (c *call) findKeys(references []text) ([]int64, error) {
	var ids []int64
	var unknown []string
	for _, reference := range references {
		if k := c.p.findKey(reference); k != nil {
			ids = append(ids, k.ID)
		} else {
			unknown = append(unknown, string(reference))
		}
	}
	if len(unknown) > 0 {
		return nil, unprocessable("%s are invalid key identifiers for Droplet creation.", strings.Join(unknown, ", "))
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
