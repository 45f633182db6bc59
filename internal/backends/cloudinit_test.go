// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const testKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJlUXHyB6Lyr1pVd0N4t8kFqeXGbXFZ6VbQkYjWQ0z5t me@example.com"

func TestUserDataAloneIsSentByteForByte(t *testing.T) {
	for _, userData := range []string{"#cloud-config\r\n", "\x00\xff binary", "no header", "#!/bin/sh\necho ünïcode"} {
		out, err := MachineSpec{Name: "web", UserData: userData}.CloudInit()
		if err != nil || string(out) != userData {
			t.Errorf("%q became %q, %v", userData, out, err)
		}
	}
}

func TestCloudConfigNamesTheHostAndItsKeys(t *testing.T) {
	out, err := MachineSpec{Name: "web.example.com", SSHKeys: []string{" " + testKey + "\n", `ssh-rsa AAAA "quoted" #<&>`}}.CloudInit()
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Hostname string   `yaml:"hostname"`
		FQDN     string   `yaml:"fqdn"`
		Keys     []string `yaml:"ssh_authorized_keys"`
	}
	if err := yaml.Unmarshal(out, &config); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if config.Hostname != "web" || config.FQDN != "web.example.com" || len(config.Keys) != 2 || config.Keys[0] != testKey || config.Keys[1] != `ssh-rsa AAAA "quoted" #<&>` {
		t.Errorf("got %+v from\n%s", config, out)
	}
	if !bytes.HasPrefix(out, []byte("#cloud-config\n")) {
		t.Errorf("no header: %q", out)
	}
}

func TestUserDataAndKeysBecomeAMultipart(t *testing.T) {
	for userData, kind := range map[string]string{
		"#cloud-config\npackages: [nginx]\n":      "text/cloud-config",
		"#!/bin/sh\necho plain\n":                 "text/x-shellscript",
		"#!/bin/sh\necho ünïcode\r\n\x00":         "text/x-shellscript",
		"#!/bin/sh\n" + strings.Repeat("x", 2000): "text/x-shellscript",
	} {
		out, err := MachineSpec{Name: "web", UserData: userData, SSHKeys: []string{testKey}}.CloudInit()
		if err != nil {
			t.Fatal(err)
		}
		parts := readMultipart(t, out)
		if len(parts) != 2 || parts[0].kind != kind || parts[0].body != userData {
			t.Errorf("%.40q: got %+v", userData, parts)
		}
		if parts[1].kind != "text/cloud-config" || !strings.Contains(parts[1].body, testKey) {
			t.Errorf("%.40q: our part is %+v", userData, parts[1])
		}
		again, _ := MachineSpec{Name: "web", UserData: userData, SSHKeys: []string{testKey}}.CloudInit()
		if !bytes.Equal(out, again) {
			t.Error("the same input gave other user data")
		}
	}
}

func TestUserDataOfAnotherFormCannotBeJoined(t *testing.T) {
	for _, userData := range []string{"Content-Type: multipart/mixed; boundary=x\n", "#cloud-config-archive\n", "## template: jinja\n#cloud-config", "\x1f\x8b"} {
		if _, err := (MachineSpec{Name: "web", UserData: userData, SSHKeys: []string{testKey}}).CloudInit(); !HasCode(err, InvalidInput) || len(AsError(err).Path) != 0 {
			t.Errorf("%q: got %v", userData, err)
		}
	}
}

type mimePart struct{ kind, body string }

func readMultipart(t *testing.T, raw []byte) []mimePart {
	t.Helper()
	msg, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%v in\n%s", err, raw)
	}
	_, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	var out []mimePart
	r := multipart.NewReader(msg.Body, params["boundary"])
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		if p.Header.Get("Content-Transfer-Encoding") == "base64" {
			if body, err = base64.StdEncoding.DecodeString(string(bytes.ReplaceAll(body, []byte("\r\n"), nil))); err != nil {
				t.Fatal(err)
			}
		}
		kind, _, _ := strings.Cut(p.Header.Get("Content-Type"), ";")
		out = append(out, mimePart{kind, string(body)})
	}
}

func FuzzCloudInit(f *testing.F) {
	f.Add("#!/bin/sh\n--bettercompute-\r\n", testKey, "web")
	f.Fuzz(func(t *testing.T, userData, key, name string) {
		out, err := MachineSpec{Name: name, UserData: userData, SSHKeys: []string{key}}.CloudInit()
		if err != nil || userData == "" {
			return
		}
		if parts := readMultipart(t, out); len(parts) != 2 || parts[0].body != userData {
			t.Errorf("%q came out as %+v", userData, parts)
		}
	})
}
