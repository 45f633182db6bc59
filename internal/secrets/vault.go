// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package secrets

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/vault/api"
	"golang.org/x/sync/singleflight"
)

// vaultMemory is how long an answer of Vault is kept (DESIGN.md §5).
const vaultMemory = 30 * time.Second

// vaultTimeout bounds one request to Vault where VAULT_CLIENT_TIMEOUT doesn't. It
// is shorter than [backends.RequestTimeout], so that a Vault that hangs is named,
// not the cloud that waits for it.
const vaultTimeout = 30 * time.Second

// vaultReader reads secrets and remembers them for a moment, one secret with all
// its fields at a time: two fields of one secret cost one read.
type vaultReader struct {
	config  VaultConfig
	flights singleflight.Group

	mu       sync.Mutex
	client   *api.Client // nil until the first vault:// reference
	memory   map[string]*remembered
	forgets  map[string]int // counts forget calls, for the flights they overtake
	inFlight map[string]int
}

type remembered struct {
	fields  map[string]any
	expires time.Time
}

func newVaultReader(config VaultConfig) *vaultReader {
	return &vaultReader{config: config, memory: map[string]*remembered{}, forgets: map[string]int{}, inFlight: map[string]int{}}
}

// read is the text of a reference's field. Concurrent reads of a secret share one
// request, which goes on when one of the callers gives up.
func (v *vaultReader) read(ctx context.Context, ref Reference) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	fields, ok := v.recall(ref.Path)
	if !ok {
		answer := v.flights.DoChan(ref.Path, func() (any, error) {
			return v.fetch(context.WithoutCancel(ctx), ref.Path)
		})
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case a := <-answer:
			if a.Err != nil {
				return "", a.Err
			}
			fields, _ = a.Val.(map[string]any)
		}
	}
	return fieldText(ref, fields)
}

func (v *vaultReader) recall(path string) (map[string]any, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	m, ok := v.memory[path]
	if !ok || !time.Now().Before(m.expires) {
		return nil, false
	}
	return m.fields, true
}

// fetch reads a secret and remembers it, unless it was forgotten meanwhile: the
// answer may then hold the value that was refused.
func (v *vaultReader) fetch(ctx context.Context, path string) (map[string]any, error) {
	v.mu.Lock()
	if m, ok := v.memory[path]; ok && time.Now().Before(m.expires) {
		// Another flight landed between the caller's look and this one's start.
		v.mu.Unlock()
		return m.fields, nil
	}
	v.inFlight[path]++
	start := v.forgets[path]
	v.mu.Unlock()

	fields, err := v.fetchNow(ctx, path)

	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil && v.forgets[path] == start {
		v.remember(path, fields)
	}
	if v.inFlight[path]--; v.inFlight[path] == 0 {
		delete(v.inFlight, path)
		delete(v.forgets, path)
	}
	return fields, err
}

// remember is called with mu held. The timer takes the value out of memory for
// good; the expiry covers a timer that is late.
func (v *vaultReader) remember(path string, fields map[string]any) {
	m := &remembered{fields: fields, expires: time.Now().Add(vaultMemory)}
	v.memory[path] = m
	time.AfterFunc(vaultMemory, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.memory[path] == m {
			delete(v.memory, path)
		}
	})
}

func (v *vaultReader) forget(path string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.memory, path)
	if v.inFlight[path] > 0 {
		v.forgets[path]++
	}
	v.flights.Forget(path)
}

func (v *vaultReader) fetchNow(ctx context.Context, path string) (map[string]any, error) {
	client, err := v.connect()
	if err != nil {
		return nil, err
	}
	return kvRead(ctx, client, path)
}

// connect builds the client once. A failure isn't kept.
func (v *vaultReader) connect() (*api.Client, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.client != nil {
		return v.client, nil
	}
	client, err := newVaultClient(v.config)
	if err != nil {
		return nil, err
	}
	v.client = client
	return client, nil
}

// newVaultClient follows the environment as Vault's own tools do, then the
// provider block. The library's errors may hold an address with a password in it
// or a variable's value, so they aren't repeated.
func newVaultClient(c VaultConfig) (*api.Client, error) {
	if c.Address == "" && os.Getenv(api.EnvVaultAddress) == "" && os.Getenv(api.EnvVaultAgentAddr) == "" {
		return nil, failure("There is no address of a Vault to read vault:// references from.").
			WithRemedy("Set vault = { address = \"https://…\" } in the provider block, or export %s.", api.EnvVaultAddress)
	}
	config := api.DefaultConfig()
	if config.Error != nil {
		return nil, failure("Vault's client can't be set up from the VAULT_* environment variables.").
			WithRemedy("Check VAULT_CACERT, VAULT_CLIENT_CERT, VAULT_CLIENT_KEY, VAULT_SKIP_VERIFY and their like.")
	}
	if c.Address != "" {
		config.Address = c.Address
		config.AgentAddress = "" // VAULT_AGENT_ADDR would win over what the block says
	}
	config.MaxRetries = 0 // the retry policy is the backends'
	if os.Getenv(api.EnvVaultClientTimeout) == "" {
		config.Timeout = vaultTimeout
	}
	if c.Transport != nil {
		config.HttpClient.Transport = c.Transport
	}
	if !strings.HasPrefix(config.Address, "unix://") { // for a socket the client wants its own kind of transport
		config.HttpClient.Transport = bounded{config.HttpClient.Transport}
	}
	client, err := api.NewClient(config)
	if err != nil || !strings.Contains(client.Address(), "://") {
		return nil, failure("Vault's client can't be set up: the address is not a url, or a VAULT_* environment variable is wrong.").
			WithRemedy("The address looks like https://vault.example.com:8200. Check vault.address of the provider block, %s and VAULT_HEADERS.", api.EnvVaultAddress)
	}
	// VAULT_WRAP_TTL would make Vault hand out a wrapping token in place of the secret.
	client.SetWrappingLookupFunc(func(string, string) string { return "" })
	if c.Namespace != "" {
		client.SetNamespace(c.Namespace)
	}
	if c.Token != "" {
		client.SetToken(c.Token)
	}
	client.SetToken(strings.TrimSpace(client.Token()))
	return client, nil
}

// maxVaultAnswer bounds an answer in bytes: a secret of Vault's is at most 1 MiB.
const maxVaultAnswer = 2 << 20

// bounded is a transport whose answers have a bound, and lead to no other server: the
// client would follow a redirect, and take the token along.
type bounded struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= http.StatusMultipleChoices && answer.StatusCode < http.StatusBadRequest {
		to, err := answer.Location()
		if err != nil || to.Host != r.URL.Host || to.Scheme != r.URL.Scheme {
			_ = answer.Body.Close()
			return nil, redirected(to)
		}
	}
	answer.Body = http.MaxBytesReader(nil, answer.Body, maxVaultAnswer)
	return answer, nil
}

func redirected(to *url.URL) error {
	elsewhere := "elsewhere"
	if to != nil && to.Host != "" {
		elsewhere = "to " + to.Scheme + "://" + to.Host
	}
	return failure("Vault redirects %s, and the token is not sent there.", elsewhere).
		WithRemedy("If that is the right server (the active node of a cluster), set the address to it, or to a load balancer that finds the active node.")
}

// fieldText is a field as text. A number is taken as it is written in the
// secret's JSON: `vault kv put` keeps texts, but other tools write a PIN as a
// number. Anything else is refused.
func fieldText(ref Reference, fields map[string]any) (string, error) {
	value, ok := fields[ref.Field]
	if !ok {
		return "", failure("%s can't be resolved: the secret has no field %q.", ref, ref.Field).
			WithRemedy("Look at its fields with `vault kv get %s` and name one of them after the #.", ref.Path)
	}
	switch x := value.(type) {
	case string:
		return x, nil
	case json.Number:
		return x.String(), nil
	}
	return "", failure("%s can't be resolved: the field is not a text.", ref).
		WithRemedy("Store the credential as a text: `vault kv patch %s %s=…`.", ref.Path, ref.Field)
}
