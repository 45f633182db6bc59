// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/flagvalue"
)

// tokenVariable is the variable that the documentation of this project uses.
const tokenVariable = "PROXMOX_TOKEN"

// Cloud is the entry of this cloud in the command line's list of emulators. It is
// served over HTTPS, with a certificate that is made at the start.
func Cloud() emulator.Cloud {
	return emulator.Cloud{
		Name:          "proxmox",
		Title:         "Proxmox VE",
		Address:       "127.0.0.1:8803",
		Configure:     configure,
		Account:       account,
		TokenVariable: tokenVariable,
		// Quoted, because shells look for commands after the "!".
		Token: "'root@pam!tofu=anything'",
	}
}

// configure adds the flags that only this cloud has.
func configure(flags *flag.FlagSet) func(emulator.Settings) (emulator.Service, error) {
	options := Options{Version: 9, Lag: DefaultLag, Scale: 1}
	flags.BoolVar(&options.PlainHTTP, "proxmox-http", false, "let the emulated Proxmox VE speak HTTP, without a certificate")
	flags.Var(&options.Denials, "proxmox-deny",
		"`PATH=PRIVILEGE` that tokens lack below a path, such as /vms=VM.Clone; user@realm!name:PATH=PRIVILEGE: that token only (repeatable)")
	flags.Func("proxmox-version", "major `version` of the emulated Proxmox VE, 8 or 9 (default 9)", func(text string) error {
		options.Version = atoi(text)
		if _, known := versions[options.Version]; !known {
			return errors.New("say 8 or 9")
		}
		return nil
	})
	flags.Func("proxmox-nodes", "`names` of the nodes, with commas (default pve1,pve2)", func(text string) error {
		options.Nodes = strings.Split(text, ",")
		for _, name := range options.Nodes {
			if problem := formats["pve-node"](name); name == "" || problem != "" {
				return fmt.Errorf("%q is not the name of a node", name)
			}
		}
		return nil
	})
	flags.Func("proxmox-snippets", "`folder` of this machine with the snippets of a storage called snippets, which all nodes share", func(text string) error {
		folder, err := snippetsFolder(text)
		if err == nil {
			options.Snippets = folder
		}
		return err
	})
	flags.Var((*flagvalue.Duration)(&options.Lag), "proxmox-lag",
		"`duration` by which the cluster's list of resources lags behind, and after which the HA manager acts")
	flags.Var((*flagvalue.Duration)(&options.AgentDelay), "proxmox-agent-delay",
		"`duration` from a start until a guest's agent answers; 0 is a quarter of -boot")
	flags.Func("proxmox-scale", "`factor` for that lag and the waits for locks and shutdowns, such as 0.1 (default 1)", func(text string) error {
		if _, err := fmt.Sscan(text, &options.Scale); err != nil || options.Scale <= 0 {
			return errors.New("say a number above 0")
		}
		return nil
	})
	return func(settings emulator.Settings) (emulator.Service, error) {
		options.Boot, options.Latency, options.Projects = settings.Boot, settings.Latency, settings.Projects
		if options.Lag == 0 {
			options.Lag = -1
		}
		return New(options)
	}
}

// snippetsFolder is the absolute path of a folder, which must be there.
func snippetsFolder(text string) (string, error) {
	folder, err := filepath.Abs(text)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return "", fmt.Errorf("there is no folder %s", folder)
	}
	return folder, nil
}

// account is the attribute for an account: with the certificate's fingerprint,
// which nothing else vouches for, and the snippets' folder.
func account(service emulator.Service, address string) string {
	var pin, snippets string
	if s, ok := service.(*Service); ok {
		if s.Fingerprint() != "" {
			pin = fmt.Sprintf("\n  tls_fingerprint = %q", s.Fingerprint())
		}
		if s.options.Snippets != "" {
			snippets = fmt.Sprintf("\n  snippets = {\n    storage   = %q\n    directory = %q\n  }", SnippetsStorage, s.options.Snippets)
		}
	}
	text := fmt.Sprintf("url = %q\n  token = \"env://%s\"%s", emulator.URL(service, address), tokenVariable, pin)
	if pin != "" {
		text = strings.NewReplacer("url =", "url             =", "token =", "token           =").Replace(text)
	} else {
		text = strings.Replace(text, "url =", "url   =", 1)
	}
	return "proxmox = {\n  " + text + snippets + "\n}"
}
