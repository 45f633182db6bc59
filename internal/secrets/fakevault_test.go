// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package secrets

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// fakeVault answers reads as Vault's HTTP API documents them
// (https://developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2 and kv-v1): the
// envelope, 404 with an empty errors list, 404 with data for a deleted version,
// 403 before 404 for a token that may not, and 503 while sealed.
type fakeVault struct {
	mu           sync.Mutex
	token        string
	namespace    string
	mounts       map[string]fakeMount // by path, no slash at the end
	secrets      map[string]any       // by API path: secret/data/app (v2) or kv1/app (v1); what `data` holds
	deleted      map[string]string    // by API path: deleted or destroyed
	hideMounts   bool                 // 403 from sys/internal/ui/mounts
	reportPrefix string               // namespaces that the mounts endpoint puts before a path
	denied       map[string]bool      // API paths that are 403
	sealed       bool
	status       int // of every answer, with a page that isn't JSON
	hold         chan struct{}
	calls        []string
}

type fakeMount struct{ kind, version string }

func (f *fakeVault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/v1/")
	f.mu.Lock()
	f.calls = append(f.calls, path)
	hold := f.hold
	f.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.status != 0:
		w.WriteHeader(f.status)
		_, _ = w.Write([]byte("<html>" + r.Header.Get("X-Vault-Token") + "</html>"))
	case f.sealed:
		fakeErrors(w, http.StatusServiceUnavailable, "Vault is sealed")
	case r.Header.Get("X-Vault-Request") != "true":
		fakeErrors(w, http.StatusPreconditionFailed, "missing 'X-Vault-Request' header")
	case r.Method != http.MethodGet:
		fakeErrors(w, http.StatusMethodNotAllowed, "unsupported operation")
	case r.Header.Get("X-Vault-Token") == "":
		fakeErrors(w, http.StatusForbidden, "permission denied")
	case r.Header.Get("X-Vault-Token") != f.token || r.Header.Get("X-Vault-Namespace") != f.namespace:
		fakeErrors(w, http.StatusForbidden, "2 errors occurred:\n\t* permission denied\n\t* invalid token\n\n")
	case f.denied[path]:
		fakeErrors(w, http.StatusForbidden, "1 error occurred:\n\t* permission denied\n\n")
	case r.Header.Get("X-Vault-Wrap-TTL") != "":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"data": nil, "wrap_info": map[string]any{"token": "hvs.wrapped", "ttl": 300}})
	case strings.HasPrefix(path, "sys/internal/ui/mounts/"):
		f.serveMount(w, strings.TrimPrefix(path, "sys/internal/ui/mounts/"))
	case f.deleted[path] != "":
		fakeJSON(w, http.StatusNotFound, map[string]any{"data": nil, "metadata": map[string]any{
			"created_time": "2026-01-01T00:00:00Z", "deletion_time": "2026-01-02T00:00:00Z",
			"destroyed": f.deleted[path] == "destroyed", "version": 3,
		}})
	case f.secrets[path] != nil:
		fakeJSON(w, http.StatusOK, f.secrets[path])
	default:
		f.serveMissing(w, path)
	}
}

func (f *fakeVault) serveMount(w http.ResponseWriter, path string) {
	if !f.hideMounts {
		for at, m := range f.mounts {
			if strings.HasPrefix(path, at+"/") {
				data := map[string]any{"path": f.reportPrefix + at + "/", "type": m.kind, "options": nil}
				if m.version != "" {
					data["options"] = map[string]any{"version": m.version}
				}
				fakeJSON(w, http.StatusOK, data)
				return
			}
		}
	}
	fakeErrors(w, http.StatusForbidden, "preflight capability check returned 403, please ensure client's policies grant access to path \""+path+"/\"")
}

func (f *fakeVault) serveMissing(w http.ResponseWriter, path string) {
	for at, m := range f.mounts {
		rest, ok := strings.CutPrefix(path, at+"/")
		if ok && m.version == "2" && !strings.HasPrefix(rest, "data/") {
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(map[string]any{"data": nil, "warnings": []string{
				"Invalid path for a versioned K/V secrets engine. See the API docs for the appropriate API endpoints to use."}})
			return
		}
	}
	fakeErrors(w, http.StatusNotFound)
}

func fakeJSON(w http.ResponseWriter, status int, data any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"request_id": "00000000-0000-0000-0000-000000000000", "lease_id": "", "renewable": false, "lease_duration": 0,
		"data": data, "wrap_info": nil, "warnings": nil, "auth": nil,
	})
}

func fakeErrors(w http.ResponseWriter, status int, texts ...string) {
	if texts == nil {
		texts = []string{}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": texts})
}

func (f *fakeVault) set(change func(*fakeVault)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// count is the number of reads of an API path.
func (f *fakeVault) count(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if c == path {
			n++
		}
	}
	return n
}

// inMemory carries requests to a handler without a network, so that fake time
// can pass (testing/synctest doesn't count network reads as waiting).
type inMemory struct{ handler http.Handler }

func (t inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	t.handler.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	answer := w.Result()
	answer.Request = r
	return answer, nil
}

func v2(fields map[string]any) map[string]any {
	return map[string]any{"data": fields, "metadata": map[string]any{"version": 1, "destroyed": false}}
}
