// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	ocean "github.com/better-compute/terraform-provider-bettercompute/internal/backends/digitalocean"
	backend "github.com/better-compute/terraform-provider-bettercompute/internal/backends/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/conformance"
	"github.com/better-compute/terraform-provider-bettercompute/internal/conformance/cli"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulatedocean "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

const (
	tokenVariable = "CONFORMANCE_TEST_TOKEN"
	wrongVariable = "CONFORMANCE_TEST_WRONG"
	token         = "correct-horse-battery-staple"
	wrong         = "incorrect-horse-battery-staple"
)

// Real sockets take real time, so the provider's own waits are made short.
func TestMain(m *testing.M) {
	if err := os.Setenv(backends.TimeScaleVariable, "0.01"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func run(ctx context.Context, t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	registry, err := backends.NewRegistry(backend.New(backend.Options{}), ocean.New(ocean.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	status = cli.Run(ctx, args, registry, &out, &errs)
	return status, out.String(), errs.String()
}

// outcomes are a report's lines without times and counts.
func outcomes(report string) []string {
	return regexp.MustCompile(`(?m)^(pass|FAIL|skip)  \S+`).FindAllString(report, -1)
}

func TestRecordAndReplay(t *testing.T) {
	t.Run("hetzner-cloud", func(t *testing.T) {
		cloud := emulated.New(emulated.Options{Boot: 40 * time.Millisecond, Projects: emulator.Projects{token: "main"}})
		recordAndReplay(t, cloud, "hetzner-cloud://root/main?endpoint=%s/v1&token=env://"+tokenVariable, "cx23", "debian-13", "idempotency-key", true)
	})
	t.Run("digitalocean", func(t *testing.T) {
		cloud := emulatedocean.New(emulatedocean.Options{
			Boot: 40 * time.Millisecond, SnapshotInterval: -1, Projects: emulator.Projects{token: emulator.DefaultProject},
		})
		recordAndReplay(t, cloud, "digitalocean://root/main?endpoint=%s&region=nyc2&token=env://"+tokenVariable, "s-1vcpu-1gb", "debian-13-x64",
			"better-compute:key:inst_", false, "-network", cloud.AddVPC("shares", "nyc2"))
	})
}

func recordAndReplay(t *testing.T, cloud emulator.Service, uriFormat, offer, image, key string, passwords bool, more ...string) {
	server := httptest.NewServer(cloud)
	defer server.Close()
	t.Setenv(tokenVariable, token)
	t.Setenv(wrongVariable, wrong)
	t.Setenv("VCR_DEBUG", "1") // must have no effect
	cassette := filepath.Join(t.TempDir(), "recording.yaml")
	uri := fmt.Sprintf(uriFormat, server.URL)
	args := append([]string{"-prefix", "ci-1", uri, "-offer", offer, "-image", image, "-wrong-credential", "env://" + wrongVariable}, more...)

	status, recorded, stderr := run(t.Context(), t, append(args, "-record", cassette)...)
	t.Log(recorded)
	if status != 0 || stderr != "" {
		t.Fatalf("recording ended with status %d\n%s\n%s", status, recorded, stderr)
	}
	if got, want := len(outcomes(recorded)), len(conformance.Cases()); got != want {
		t.Errorf("%d cases of %d were reported on:\n%s", got, want, recorded)
	}
	left := cloud.Objects()
	for _, o := range slices.Concat(left.Machines, left.Volumes, left.Snapshots) {
		t.Errorf("%s (%s) is left", o.Name, o.ID)
	}
	if strings.Contains(recorded, token) || strings.Contains(recorded, wrong) {
		t.Error("the report holds a token")
	}
	checkClean(t, cassette, key, passwords)

	server.Close()
	if err := os.Unsetenv(tokenVariable); err != nil {
		t.Fatal(err)
	}
	if err := os.Unsetenv(wrongVariable); err != nil {
		t.Fatal(err)
	}
	status, replayed, stderr := run(t.Context(), t, append(args, "-replay", cassette)...)
	if status != 0 || stderr != "" {
		t.Fatalf("replaying ended with status %d\n%s\n%s", status, replayed, stderr)
	}
	if got, want := strings.Join(outcomes(replayed), "\n"), strings.Join(outcomes(recorded), "\n"); got != want {
		t.Errorf("the replay differs:\n%s\nrecorded:\n%s", got, want)
	}

	// A part of a recording replays too, though its catalog was read by another case.
	status, replayed, stderr = run(t.Context(), t, append(args, "-replay", cassette, "-run", "^create/adopt$|wrong")...)
	if status != 0 || len(outcomes(replayed)) != 2 {
		t.Errorf("replaying two cases ended with status %d\n%s\n%s", status, replayed, stderr)
	}

	// Another image is another request: the recording must not answer it.
	status, replayed, _ = run(t.Context(), t, "-replay", cassette, uri, "-offer", offer, "-image", "another", "-prefix", "ci-1", "-run", "create/makes")
	if status != 1 || !strings.Contains(replayed, "The recording has no answer to") {
		t.Errorf("replaying with another image ended with status %d\n%s", status, replayed)
	}
}

// checkClean reads the recording as a stranger would. key marks idempotency keys;
// passwords tells whether the cloud answers with root passwords.
func checkClean(t *testing.T, cassette, key string, passwords bool) {
	t.Helper()
	data, err := os.ReadFile(cassette)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, secret := range []string{token, wrong, "Bearer", "Authorization", "Set-Cookie", "#cloud-config"} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(secret)) {
			t.Errorf("the recording holds %q", secret)
		}
	}
	removed := 0
	for _, p := range regexp.MustCompile(`root_password\\?":(\\?"[^"]*"|null)`).FindAllStringSubmatch(text, -1) {
		switch {
		case strings.Contains(p[1], "REMOVED"):
			removed++
		case p[1] != "null":
			t.Errorf("the recording holds a root password: %s", p[0])
		}
	}
	if passwords && removed == 0 {
		t.Error("no root password was removed: this test looks in the wrong place")
	}
	if !strings.Contains(text, key) {
		t.Error("the recording lacks the idempotency keys, which are no secrets")
	}
	info, err := os.Stat(cassette)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the recording: %v", info.Mode())
	}
}

func TestFailureHasStatusOne(t *testing.T) {
	cloud := emulated.New(emulated.Options{Boot: 40 * time.Millisecond, Projects: emulator.Projects{token: "main"}})
	server := httptest.NewServer(cloud)
	defer server.Close()
	t.Setenv(tokenVariable, wrong)
	status, stdout, _ := run(t.Context(), t, "hetzner-cloud://root/main?endpoint="+server.URL+"/v1&token=env://"+tokenVariable,
		"-offer", "cx23", "-image", "debian-13", "-run", "credentials/|create/makes")
	if status != 1 || !strings.Contains(stdout, "FAIL  credentials/good") || !strings.Contains(stdout, "reason: credentials") {
		t.Errorf("a wrong token ended with status %d\n%s", status, stdout)
	}
	if strings.Contains(stdout, "Not cleaned up") || !strings.Contains(stdout, "skip  create/makes") {
		t.Errorf("where no credential works, nothing else is tried:\n%s", stdout)
	}
	if strings.Contains(stdout, wrong) {
		t.Error("the report holds the token")
	}
}

func TestInterruptEndsAndCleansUp(t *testing.T) {
	// A server can't be deleted before it has booted: cleaning up has to wait for it.
	cloud := emulated.New(emulated.Options{Boot: time.Second, DeleteTime: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(interrupting(cloud, cancel))
	defer server.Close()
	t.Setenv(tokenVariable, token)
	status, stdout, _ := run(ctx, t, "hetzner-cloud://root/main?endpoint="+server.URL+"/v1&token=env://"+tokenVariable,
		"-offer", "cx23", "-image", "debian-13", "-run", "create/makes")
	if status != 1 || !strings.Contains(stdout, "was ended") {
		t.Errorf("an interrupted run ended with status %d\n%s", status, stdout)
	}
	if left := cloud.Servers(); len(left) > 0 {
		t.Errorf("%d servers are left\n%s", len(left), stdout)
	}
}

func TestArguments(t *testing.T) {
	good := []string{"-offer", "cx23", "-image", "debian-13"}
	const uri = "hetzner-cloud://root/main?token=env://HCLOUD_TOKEN"
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no uri":           {good, "an account uri is required"},
		"no offer":         {[]string{uri, "-image", "debian-13"}, "-offer is required"},
		"no image":         {[]string{uri, "-offer", "cx23"}, "-image is required"},
		"two uris":         {append([]string{uri, "x"}, good...), "2 arguments"},
		"unknown flag":     {append([]string{uri, "-x"}, good...), "-x"},
		"bad uri":          {append([]string{"other-cloud://root/main"}, good...), "other-cloud"},
		"a pool's uri":     {append([]string{"hetzner-cloud://root/main/web?token=env://HCLOUD_TOKEN"}, good...), "account"},
		"bad prefix":       {append([]string{uri, "-prefix", "CI_1"}, good...), "-prefix: "},
		"bad regexp":       {append([]string{uri, "-run", "("}, good...), "-run: "},
		"no case":          {append([]string{uri, "-run", "nothing"}, good...), "no case's name"},
		"both":             {append([]string{uri, "-record", "a", "-replay", "b", "-prefix", "p"}, good...), "exclude each other"},
		"no prefix":        {append([]string{uri, "-record", "a"}, good...), "need a -prefix"},
		"no size":          {append([]string{uri, "-volume-size", "0", "-share-size", "-1"}, good...), "-volume-size must be more than nothing\n-share-size"},
		"no network":       {append([]string{uri, "-share-region", "x"}, good...), "nothing without a -network"},
		"digit first":      {append([]string{uri, "-prefix", "1ci"}, good...), "-prefix: "},
		"no time":          {append([]string{uri, "-timeout", "0s"}, good...), "-timeout"},
		"no unit":          {append([]string{uri, "-timeout", "90"}, good...), "say 90s for seconds"},
		"no token":         {append([]string{strings.ReplaceAll(uri, "HCLOUD_TOKEN", "CONFORMANCE_TEST_UNSET")}, good...), "the account: "},
		"no wrong one":     {append([]string{strings.ReplaceAll(uri, "HCLOUD_TOKEN", tokenVariable), "-wrong-credential", "env://CONFORMANCE_TEST_UNSET"}, good...), "-wrong-credential: "},
		"literal":          {append([]string{uri, "-wrong-credential", "hunter2hunter2"}, good...), "-wrong-credential"},
		"all at once":      {nil, "-offer is required\n-image is required"},
		"flags around uri": {append(append([]string{}, good...), uri, "-run", "nothing"), "no case's name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(tokenVariable, token)
			status, stdout, stderr := run(t.Context(), t, c.args...)
			if status != 2 || !strings.Contains(stderr, c.want) || stdout != "" {
				t.Errorf("status %d, stdout %q, stderr %q; want status 2 and %q", status, stdout, stderr, c.want)
			}
			if strings.Contains(stderr, "hunter2") {
				t.Errorf("the message repeats what may be a credential: %q", stderr)
			}
		})
	}
}

func TestHelpAndList(t *testing.T) {
	status, stdout, stderr := run(t.Context(), t, "-h")
	if status != 0 || stderr != "" || !strings.Contains(stdout, "-replay file") {
		t.Errorf("-h: status %d\n%s\n%s", status, stdout, stderr)
	}
	status, stdout, _ = run(t.Context(), t, "-list")
	if status != 0 || strings.Count(stdout, "\n") != len(conformance.Cases()) {
		t.Errorf("-list: status %d\n%s", status, stdout)
	}
}
