// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"
	"github.com/hashicorp/terraform-plugin-log/tfsdklogtest"
)

const (
	clusterToken  = "root@pam!tofu=secret"
	writeOnlyData = "#cloud-config\n# write-only data: \"p&ss/w+rd\" <7Kq2>\n"
	stateData     = "#cloud-config\n# sensitive data: \"p&ss/w+rd\" <9Xw4>\n"
)

// secret is a value that tests give to the provider, and that must not come out of it.
type secret struct {
	name  string
	forms [][]byte
	// once says that an object's state and plan have it, as it is and one time: the
	// sensitive attribute user_data, which a core keeps.
	once bool
}

// testSecrets are all of them. The values of the literal ones stand where no secret
// may stand, and are refused.
var testSecrets = []secret{
	secretOf("the token", token), secretOf("the cluster's token", clusterToken),
	secretOf("another token", "second-token"), secretOf("another token", "third-token"), secretOf("another token", "revoked-token"),
	secretOf("a literal", "literal-secret-7Gh2"), secretOf("a literal", "literal-secret-value"), secretOf("a literal", "dop_v1_literal"),
	secretOf("user_data_wo", writeOnlyData),
	{name: "user_data", forms: formsOf(stateData), once: true},
}

func secretOf(name, value string) secret { return secret{name: name, forms: formsOf(value)} }

// formsOf are the spellings in which a value shows: as it is, quoted for JSON with and
// without HTML's characters escaped, escaped for a query and for a path, and in base64,
// in which it looks otherwise for each of three places to begin at. The first one is the
// value as it is.
func formsOf(value string) [][]byte {
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
	escaped, _ := json.Marshal(value)
	forms := [][]byte{
		[]byte(value), bytes.Trim(bytes.TrimSpace(plain.Bytes()), `"`), bytes.Trim(escaped, `"`),
		[]byte(url.QueryEscape(value)), []byte(url.PathEscape(value)),
	}
	for before := range 3 {
		// The characters at both ends depend on what stands beside the value.
		padded := append(make([]byte, before), value...)
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := encoding.EncodeToString(padded)
			forms = append(forms, []byte(text[(before*8+5)/6:len(padded)*8/6]))
		}
	}
	slices.SortStableFunc(forms[1:], bytes.Compare)
	return slices.CompactFunc(forms, bytes.Equal)
}

// secretsIn are the names of the secrets in a text. inState says that it is an object's.
func secretsIn(text []byte, inState bool) (names []string) {
	for _, s := range testSecrets {
		found := 0
		for _, form := range s.forms {
			found += bytes.Count(text, form)
		}
		if inState && s.once && found == 1 && bytes.Contains(text, s.forms[0]) {
			continue
		}
		if found > 0 {
			names = append(names, s.name)
		}
	}
	return names
}

// scan looks through every text of an answer: states, plans, private data, diagnostics,
// identities, schemas. It returns where a secret is.
func scan(where string, v reflect.Value, found func(where, secret string)) {
	look := func(text []byte) {
		for _, name := range secretsIn(text, false) {
			found(where, name)
		}
	}
	switch v.Kind() {
	case reflect.String:
		look([]byte(v.String()))
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return
		}
		if d, ok := asDynamic(v); ok {
			for _, name := range secretsIn(append(bytes.Clone(d.MsgPack), d.JSON...), true) {
				found(where, name)
			}
			return
		}
		scan(where, v.Elem(), found)
	case reflect.Struct:
		for i := range v.NumField() {
			scan(where+"."+v.Type().Field(i).Name, v.Field(i), found)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice {
			look(v.Bytes())
			return
		}
		for i := range v.Len() {
			scan(where, v.Index(i), found)
		}
	case reflect.Map:
		for all := v.MapRange(); all.Next(); {
			scan(where, all.Key(), found)
			scan(where, all.Value(), found)
		}
	default:
	}
}

func asDynamic(v reflect.Value) (*tfprotov6.DynamicValue, bool) {
	if !v.CanInterface() {
		return nil, false
	}
	return reflect.TypeAssert[*tfprotov6.DynamicValue](v)
}

// scannedServer is a provider's server, each of whose answers is scanned for secrets. All
// tests of this package have theirs from [world.server], whatever speaks to it: so
// all that a CLI writes into a state, a plan or its output has been looked at. What the
// CLI has from the configuration itself, the provider block for one, isn't the
// provider's to keep quiet about: what a core is told to repeat
// (ValidateProviderConfig) isn't scanned.
type scannedServer struct {
	allServer
	t *testing.T
	// log gets the provider's and the framework's own at TRACE; nil is nobody.
	log *lockedBuffer
	// found is told where a secret is; nil fails the test.
	found func(where, secret string)
}

// allServer is a server with its optional parts.
type allServer interface {
	tfprotov6.ProviderServer
	tfprotov6.ListResourceServer
	tfprotov6.ActionServer
}

// scanned puts a scan around a server.
func scanned(t *testing.T, server tfprotov6.ProviderServer, log *lockedBuffer) tfprotov6.ProviderServer {
	t.Helper()
	all, ok := server.(allServer)
	if !ok {
		t.Fatal("the server has no optional parts")
	}
	return &scannedServer{allServer: all, t: t, log: log}
}

func scannedCall[Request, Response any](ctx context.Context, s *scannedServer, req Request, call func(context.Context, Request) (Response, error)) (Response, error) {
	if s.log != nil {
		ctx = tflogtest.RootLogger(tfsdklogtest.RootLogger(ctx, s.log), s.log)
	}
	resp, err := call(ctx, req)
	found := s.found
	if found == nil {
		found = func(where, secret string) { s.t.Errorf("%s shows in %s", secret, where) }
	}
	scan(reflect.TypeFor[Response]().String(), reflect.ValueOf(resp), found)
	if err != nil {
		scan("error", reflect.ValueOf(err.Error()), found)
	}
	return resp, err
}

// lockedBuffer is a log that calls in parallel write to.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// Bytes are what was written.
func (b *lockedBuffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.text.Bytes())
}

func (s *scannedServer) ConfigureProvider(ctx context.Context, req *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	return scannedCall(ctx, s, req, s.allServer.ConfigureProvider)
}

func (s *scannedServer) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return scannedCall(ctx, s, req, s.allServer.ValidateResourceConfig)
}

func (s *scannedServer) ValidateDataResourceConfig(ctx context.Context, req *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return scannedCall(ctx, s, req, s.allServer.ValidateDataResourceConfig)
}

func (s *scannedServer) UpgradeResourceState(ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	return scannedCall(ctx, s, req, s.allServer.UpgradeResourceState)
}

func (s *scannedServer) UpgradeResourceIdentity(ctx context.Context, req *tfprotov6.UpgradeResourceIdentityRequest) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	return scannedCall(ctx, s, req, s.allServer.UpgradeResourceIdentity)
}

func (s *scannedServer) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return scannedCall(ctx, s, req, s.allServer.ReadResource)
}

func (s *scannedServer) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	return scannedCall(ctx, s, req, s.allServer.PlanResourceChange)
}

func (s *scannedServer) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return scannedCall(ctx, s, req, s.allServer.ApplyResourceChange)
}

func (s *scannedServer) ImportResourceState(ctx context.Context, req *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	return scannedCall(ctx, s, req, s.allServer.ImportResourceState)
}

func (s *scannedServer) MoveResourceState(ctx context.Context, req *tfprotov6.MoveResourceStateRequest) (*tfprotov6.MoveResourceStateResponse, error) {
	return scannedCall(ctx, s, req, s.allServer.MoveResourceState)
}

func (s *scannedServer) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	return scannedCall(ctx, s, req, s.allServer.ReadDataSource)
}

func (s *scannedServer) CallFunction(ctx context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	return scannedCall(ctx, s, req, s.allServer.CallFunction)
}

// plantingServer shows a secret: in the diagnostics, the private data, the state.
type plantingServer struct {
	allServer
	plant func(*tfprotov6.ReadResourceResponse)
}

// ReadResource implements [tfprotov6.ProviderServer].
func (s plantingServer) ReadResource(context.Context, *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	resp := &tfprotov6.ReadResourceResponse{}
	s.plant(resp)
	return resp, nil
}

// A planted secret is found wherever it is and however it is spelt; user_data is let
// through where it belongs, and nowhere else.
func TestTheScanFindsPlantedSecrets(t *testing.T) {
	inner, ok := newWorld(t).server().(*scannedServer)
	if !ok {
		t.Fatal("the tests' provider isn't scanned")
	}
	private := func(value string) func(*tfprotov6.ReadResourceResponse) {
		return func(r *tfprotov6.ReadResourceResponse) {
			r.Private, _ = json.Marshal(map[string][]byte{"record": []byte(`{"a":"` + value + `"}`)})
		}
	}
	says := func(text string) func(*tfprotov6.ReadResourceResponse) {
		return func(r *tfprotov6.ReadResourceResponse) {
			r.Diagnostics = []*tfprotov6.Diagnostic{{Summary: "CONFLICT", Detail: "It said: " + text + "."}}
		}
	}
	holds := func(text string) func(*tfprotov6.ReadResourceResponse) {
		return func(r *tfprotov6.ReadResourceResponse) {
			r.NewState = &tfprotov6.DynamicValue{MsgPack: []byte("\x81\xa1a" + text)}
		}
	}
	quoted, _ := json.Marshal(writeOnlyData)
	for name, test := range map[string]struct {
		plant func(*tfprotov6.ReadResourceResponse)
		found bool
	}{
		"nothing":                       {says("nothing"), false},
		"token in a diagnostic":         {says(token), true},
		"in base64":                     {says(base64.StdEncoding.EncodeToString([]byte("Bearer " + token + "\n"))), true},
		"in base64 of another phase":    {says(base64.URLEncoding.EncodeToString([]byte("Basic: " + clusterToken))), true},
		"in a url":                      {says(url.QueryEscape(clusterToken)), true},
		"in JSON":                       {says(string(quoted)), true},
		"in private data":               {private(token), true},
		"in private data, user_data":    {private("x" + stateData), true},
		"token in the state":            {holds(token), true},
		"user_data_wo in the state":     {holds(writeOnlyData), true},
		"user_data in the state":        {holds(stateData), false},
		"user_data twice in the state":  {holds(stateData + stateData), true},
		"user_data in base64 in state":  {holds(base64.StdEncoding.EncodeToString([]byte(stateData))), true},
		"user_data in a diagnostic":     {says(stateData), true},
		"the secret of a literal token": {says("literal-secret-7Gh2"), true},
	} {
		found := false
		server := &scannedServer{allServer: plantingServer{inner.allServer, test.plant}, t: t, found: func(string, string) { found = true }}
		if _, err := server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{}); err != nil {
			t.Fatal(err)
		}
		if found != test.found {
			t.Errorf("%s: found %t", name, found)
		}
	}
}

// The log of a machine's life at TRACE, the provider's and the framework's, has no
// secret in it, and neither have the paths and queries of the calls.
func TestLogsHoldNoSecrets(t *testing.T) {
	t.Setenv("PROXMOX_TOKEN", clusterToken)
	for _, m := range matrixClouds(t) {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, m.loggedLife)
		})
	}
}

func (m *matrixCloud) loggedLife(t *testing.T) {
	t.Helper()
	s := m.newStage(t)
	s.log = &lockedBuffer{}
	network := ""
	if m.prepare != nil {
		network = m.prepare(s.service)
	}
	base := m.operations(network)[0].to[0].given
	p := &piece{matrixCloud: m}
	p.makeParents(t, s.wire())
	all := state{}
	sensitive, written := given{"user_data": stateData, "on_user_data_change": "replace"}, given{
		"user_data_wo": writeOnlyData, "user_data_wo_version": 1, "on_user_data_change": "replace",
	}
	for i, config := range []blocks{
		{{"instance.web", instanceType, with(base, sensitive)}},
		{{"instance.web", instanceType, with(base, written)}},
		{{"instance.web", instanceType, with(base, with(written, given{"offer": "no-such-offer"}))}},
		{},
	} {
		c := newCore(s.wire(), all, p.pools[0], config)
		c.run(t.Context())
		if problems := c.problems(); (problems != "") != (i == 2) {
			t.Errorf("run %d: %s", i, problems)
		}
		all = c.state
	}
	text := s.log.Bytes()
	for _, words := range []string{"request to the cloud", `"@level":"trace"`} {
		if !bytes.Contains(text, []byte(words)) {
			t.Errorf("no %q in the log of %d bytes: it isn't all there", words, len(text))
		}
	}
	for _, name := range secretsIn(text, false) {
		t.Errorf("%s shows in the log", name)
	}
	calls, err := json.Marshal(s.service.Gate().Calls())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range secretsIn(calls, false) {
		t.Errorf("%s shows in a call's path or query", name)
	}
	// The scan would have seen it.
	if names := secretsIn(append(text, []byte(`{"@message":"sent `+token+`"}`)...), false); len(names) == 0 {
		t.Error("a planted secret isn't found in the log")
	}
}
