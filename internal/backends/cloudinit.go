// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"strings"
	"unicode/utf8"
)

// mergeType lets our part add to what the user's part says: lists grow, and what
// the user set stays (cloud-init, "Merging user-data sections").
const mergeType = "list(append)+dict(no_replace,recurse_list)+str()"

// CloudInit is the user data for a cloud that takes nothing else: the user's own
// bytes when there are no keys, a cloud-config with hostname and keys when there
// is no user data, and a MIME multipart of both otherwise, which only user data
// that starts with "#cloud-config" or "#!" can be a part of.
func (s MachineSpec) CloudInit() ([]byte, error) {
	if s.UserData != "" && len(s.SSHKeys) == 0 {
		return []byte(s.UserData), nil
	}
	config := cloudConfig(s.Name, s.SSHKeys)
	if s.UserData == "" {
		return config, nil
	}
	kind, ok := cloudInitKind(s.UserData)
	if !ok {
		return nil, Errorf(InvalidInput, "ssh_keys can only be joined with user data that starts with \"#cloud-config\" or \"#!\".").
			WithRemedy("Put the keys into the user data and leave ssh_keys out, or use one of the two forms.")
	}
	return multipartOf(
		cloudInitPart{kind, "", []byte(s.UserData)},
		cloudInitPart{"text/cloud-config", mergeType, config},
	)
}

func cloudInitKind(userData string) (contentType string, ok bool) {
	first, _, _ := strings.Cut(userData, "\n")
	switch {
	case strings.TrimRight(first, " \t\r") == "#cloud-config":
		return "text/cloud-config", true
	case strings.HasPrefix(userData, "#!"):
		return "text/x-shellscript", true
	default:
		return "", false
	}
}

// cloudConfig renders YAML by hand: a JSON string is a YAML string.
func cloudConfig(name string, keys []string) []byte {
	var b bytes.Buffer
	host, _, qualified := strings.Cut(name, ".")
	fmt.Fprintf(&b, "#cloud-config\nhostname: %s\n", yamlString(host))
	if qualified {
		fmt.Fprintf(&b, "fqdn: %s\n", yamlString(name))
	}
	if len(keys) > 0 {
		b.WriteString("ssh_authorized_keys:\n")
		for _, k := range keys {
			fmt.Fprintf(&b, "  - %s\n", yamlString(strings.TrimSpace(k)))
		}
	}
	return b.Bytes()
}

func yamlString(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `""` // a string always encodes
	}
	return strings.TrimSpace(b.String())
}

type cloudInitPart struct {
	contentType, mergeType string
	body                   []byte
}

func multipartOf(parts ...cloudInitPart) ([]byte, error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	sum := sha256.New()
	for _, p := range parts {
		sum.Write(p.body)
	}
	// The boundary follows from the content: the same input is the same user data.
	if err := w.SetBoundary("bettercompute-" + hex.EncodeToString(sum.Sum(nil)[:16])); err != nil {
		return nil, fmt.Errorf("cloud-init: %w", err)
	}
	for _, p := range parts {
		encoding, encoded := transferEncoding(p.body)
		h := textproto.MIMEHeader{
			"Content-Type":              {p.contentType + `; charset="utf-8"`},
			"Content-Transfer-Encoding": {encoding},
		}
		if p.mergeType != "" {
			h.Set("Merge-Type", p.mergeType)
		}
		part, err := w.CreatePart(h)
		if err == nil {
			_, err = part.Write(encoded)
		}
		if err != nil {
			return nil, fmt.Errorf("cloud-init: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cloud-init: %w", err)
	}
	head := fmt.Sprintf("Content-Type: multipart/mixed; boundary=%q\r\nMIME-Version: 1.0\r\n\r\n", w.Boundary())
	return append([]byte(head), body.Bytes()...), nil
}

// transferEncoding leaves plain ASCII text readable and encodes everything else,
// so that the guest gets the user's bytes.
func transferEncoding(body []byte) (name string, encoded []byte) {
	line := 0
	for _, c := range body {
		if c == '\n' {
			line = 0
			continue
		}
		line++
		if line > 900 || c >= 0x7f || (c < ' ' && c != '\t') {
			out := base64.StdEncoding.EncodeToString(body)
			var b bytes.Buffer
			for len(out) > 76 {
				b.WriteString(out[:76] + "\r\n")
				out = out[76:]
			}
			b.WriteString(out)
			return "base64", b.Bytes()
		}
	}
	return "7bit", body
}

// CheckUserData measures what is sent as user data, hostname and keys included,
// against a cloud's limit in KiB. It names no input: a CLI would print the source
// line of user_data (DESIGN.md §5).
func (s MachineSpec) CheckUserData(cloud string, limitKiB int) []*Error {
	data, err := s.CloudInit()
	switch {
	case err != nil:
		if e := AsError(err); e != nil {
			return []*Error{e}
		}
		return []*Error{Errorf(InvalidInput, "The user data can't be joined with ssh_keys.")}
	case len(data) > limitKiB<<10:
		return []*Error{Errorf(InvalidInput,
			"The user data is too long: with the hostname and ssh_keys it is %d bytes, and %s takes %d (%d KiB).",
			len(data), cloud, limitKiB<<10, limitKiB).
			WithRemedy("Let the guest fetch the rest, or compress parts of it (cloud-init's write_files takes gz+b64).")}
	case !utf8.Valid(data):
		return []*Error{Errorf(InvalidInput,
			"The user data is not UTF-8 text, which is all that %s's API can carry.", cloud).
			WithRemedy("Encode binary parts with base64.")}
	}
	return nil
}
