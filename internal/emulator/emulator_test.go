// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// notes is the smallest cloud: POST adds a note, GET counts them.
type notes struct {
	*emulator.Front
	mu   sync.Mutex
	list []string
}

func newNotes(name string) *notes {
	n := &notes{}
	n.Front = emulator.NewFront(notesBackend{n, name}, 0)
	return n
}

func (n *notes) Objects() emulator.Objects {
	n.mu.Lock()
	defer n.mu.Unlock()
	objects := emulator.Objects{Machines: []emulator.Object{}, Volumes: []emulator.Object{}, Snapshots: []emulator.Object{}}
	for i, text := range n.list {
		objects.Machines = append(objects.Machines, emulator.Object{ID: fmt.Sprint(i), Name: text, State: "written"})
	}
	return objects
}

func (n *notes) Snapshot() (json.RawMessage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return json.Marshal(n.list)
}

func (n *notes) Restore(snapshot json.RawMessage) error { return json.Unmarshal(snapshot, &n.list) }

type notesBackend struct {
	n    *notes
	name string
}

func (b notesBackend) Name() string           { return b.name }
func (b notesBackend) BasePath() string       { return "/api" }
func (b notesBackend) Kinds() []emulator.Kind { return []emulator.Kind{emulator.KindLocked} }
func (b notesBackend) Refuse(w http.ResponseWriter, _ *http.Request, rule emulator.Rule) {
	w.WriteHeader(rule.Status)
}

func (b notesBackend) Serve(w http.ResponseWriter, r *http.Request) {
	if _, ok := emulator.FaultFor(r.Context(), emulator.KindLocked); ok {
		w.WriteHeader(http.StatusLocked)
		return
	}
	b.n.mu.Lock()
	defer b.n.mu.Unlock()
	if r.Method == http.MethodPost {
		text, _ := io.ReadAll(r.Body)
		b.n.list = append(b.n.list, string(text))
	}
	fmt.Fprint(w, len(b.n.list))
}

func call(t *testing.T, handler http.Handler, method, target, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://emulator.test"+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := emulator.Transport(handler).RoundTrip(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(text))
}

func TestControl(t *testing.T) {
	service := newNotes("notes")
	e, err := emulator.New("", nil, service, newNotes("other"))
	if err != nil {
		t.Fatal(err)
	}
	control := e.Control()
	call(t, service, "POST", "/api/notes?x=1", "hello")

	for _, step := range []struct {
		method, target, body string
		status               int
		want                 string
	}{
		{"GET", "/calls?service=notes", "", 200, `{"calls":[{"method":"POST","path":"/api/notes","query":"x=1","status":200,"held":false}],"count":1}`},
		{"GET", "/calls?service=other", "", 200, `{"calls":[],"count":0}`},
		{"GET", "/calls?service=none", "", 400, `unknown service \"none\"; known: notes, other`},
		{"GET", "/calls", "", 400, `service is missing`},
		{"GET", "/objects?service=notes", "", 200, `{"machines":[{"id":"0","name":"hello","state":"written","managed":false}],"volumes":[],"snapshots":[]}`},
		{"GET", "/objects?service=none", "", 400, `unknown service`},
		{"DELETE", "/calls", "", 204, ""},
		{"GET", "/calls?service=notes", "", 200, `{"calls":[],"count":0}`},
		{"POST", "/faults", `{`, 400, "not valid JSON"},
		{"POST", "/faults", `{} {}`, 400, "something follows"},
		{"POST", "/faults", `{"kind":"reset"}`, 400, "service is missing"},
		{"POST", "/faults", `{"service":"x","kind":"reset"}`, 400, "unknown service"},
		{"POST", "/faults", `{"service":"notes"}`, 400, "kind is missing"},
		{"POST", "/faults", `{"service":"notes","kind":"explode"}`, 400, `unknown kind`},
		{"POST", "/faults", `{"service":"notes","kind":"node-down"}`, 400, `does not apply to notes`},
		{"POST", "/faults", `{"service":"notes","kind":"delay"}`, 400, `needs a delay`},
		{"POST", "/faults", `{"service":"notes","kind":"delay","delay":"soon"}`, 400, `not a duration`},
		{"POST", "/faults", `{"service":"notes","kind":"delay","delay":5}`, 400, `must be a string`},
		{"POST", "/faults", `{"service":"notes","kind":"status","status":200}`, 400, `400 to 599`},
		{"POST", "/faults", `{"service":"notes","kind":"reset","nth":-1,"times":-2}`, 400, `times must be`},
		{"POST", "/faults", `{"service":"notes","kind":"reset","typo":1}`, 400, `typo`},
		{"POST", "/faults", `{"service":"notes","method":"GET","path":"/api/n*","nth":2,"times":1,"kind":"status","status":503,"delay":"0s"}`, 201, `"kind":"status"`},
		{"GET", "/faults", "", 200, `"path":"/api/n*"`},
		{"POST", "/other", "", 404, ""},
	} {
		status, body := call(t, control, step.method, step.target, step.body)
		if status != step.status || !strings.Contains(body, step.want) {
			t.Errorf("%s %s %s: %d %s", step.method, step.target, step.body, status, body)
		}
	}

	for i, want := range []int{200, 503, 200} {
		if status, _ := call(t, service, "GET", "/api/notes", ""); status != want {
			t.Errorf("call %d: %d", i+1, status)
		}
	}
	call(t, control, "POST", "/faults", `{"service":"notes","kind":"locked","times":5}`)
	if status, _ := call(t, service, "GET", "/api/notes", ""); status != 423 {
		t.Errorf("locked: %d", status)
	}
	call(t, control, "DELETE", "/faults", "")
	if status, _ := call(t, service, "GET", "/api/notes", ""); status != 200 {
		t.Errorf("after DELETE /faults: %d", status)
	}
}

func TestState(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "state.json")
	first := newNotes("notes")
	if _, err := emulator.New(file, func(err error) { t.Error(err) }, first); err != nil {
		t.Fatal(err)
	}
	call(t, first, "GET", "/api/notes", "")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a call that changed nothing wrote the state: %v", err)
	}
	call(t, first, "POST", "/api/notes", "kept")

	second := newNotes("notes")
	e, err := emulator.New(file, nil, second)
	if err != nil {
		t.Fatal(err)
	}
	if _, body := call(t, second, "GET", "/api/notes", ""); body != "1" {
		t.Errorf("restored %s notes", body)
	}
	if err := e.Save(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("left in the folder: %v %v", entries, err)
	}

	for _, text := range []string{"nonsense", `{"version":2}`, `{"version":1,"services":{"notes":5}}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := emulator.New(file, nil, newNotes("notes")); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("state %s: %v", text, err)
		}
		if kept, _ := os.ReadFile(file); !bytes.Equal(kept, []byte(text)) {
			t.Error("a state that could not be read was overwritten")
		}
	}
	var failed error
	third := newNotes("notes")
	if _, err := emulator.New(filepath.Join(folder, "none", "x"), func(err error) { failed = err }, third); err != nil {
		t.Fatal(err)
	}
	if call(t, third, "POST", "/api/notes", "lost"); failed == nil {
		t.Error("a state that could not be written is not reported")
	}
}

func TestTwoOfAName(t *testing.T) {
	if _, err := emulator.New("", nil, newNotes("x"), newNotes("x")); err == nil {
		t.Error("two services of one name")
	}
}

func TestCheckLoopback(t *testing.T) {
	for address, good := range map[string]bool{
		"127.0.0.1:80": true, "localhost:0": true, "[::1]:1": true,
		"0.0.0.0:80": false, ":80": false, "192.0.2.1:80": false, "example.com:80": false, "127.0.0.1": false, "": false,
	} {
		if err := emulator.CheckLoopback(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}
