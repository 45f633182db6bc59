// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// status is the answer about a destruction; godo has no type for it.
type status struct {
	Droplet   gone `json:"droplet"`
	Resources struct {
		Volumes         []gone `json:"volumes"`
		VolumeSnapshots []gone `json:"volume_snapshots"`
		Snapshots       []gone `json:"snapshots"`
	} `json:"resources"`
	CompletedAt *time.Time `json:"completed_at"`
	Failures    int        `json:"failures"`
}

type gone struct {
	ID           string     `json:"id"`
	Name         string     `json:"name"`
	DestroyedAt  *time.Time `json:"destroyed_at"`
	ErrorMessage string     `json:"error_message"`
}

// furnished is a Droplet with two volumes, a snapshot of each, and one of itself.
type furnished struct {
	client    *godo.Client
	service   *digitalocean.Service
	droplet   *godo.Droplet
	volumes   []string
	snapshots []string
	image     string
}

func furnish(t *testing.T, client *godo.Client, s *digitalocean.Service) furnished {
	t.Helper()
	f := furnished{client: client, service: s}
	request := small("a")
	for _, name := range []string{"data", "logs"} {
		v := must[*godo.Volume](t)(client.Storage.CreateVolume(t.Context(), &godo.VolumeCreateRequest{Name: name, Region: "fra1", SizeGigaBytes: 10}))
		snapshot := must[*godo.Snapshot](t)(client.Storage.CreateSnapshot(t.Context(), &godo.SnapshotCreateRequest{VolumeID: v.ID, Name: "of-" + name}))
		f.volumes, f.snapshots = append(f.volumes, v.ID), append(f.snapshots, snapshot.ID)
		request.Volumes = append(request.Volumes, godo.DropletCreateVolume{ID: v.ID})
	}
	f.droplet = must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), request))
	must[*godo.Action](t)(client.DropletActions.Snapshot(t.Context(), f.droplet.ID, "itself"))
	images := must[[]godo.Image](t)(client.Images.ListUser(t.Context(), nil))
	f.image = strconv.Itoa(images[0].ID)
	return f
}

// send calls below the Droplet's destroy_with_associated_resources.
func (f furnished) send(t *testing.T, method, path string, body any, answer any, dangerous bool) error {
	t.Helper()
	request, err := f.client.NewRequest(t.Context(), method, "v2/droplets/"+strconv.Itoa(f.droplet.ID)+"/destroy_with_associated_resources"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if dangerous {
		request.Header.Set("X-Dangerous", "true")
	}
	response, err := f.client.Do(t.Context(), request, answer)
	if err == nil && method != http.MethodGet && response.StatusCode != http.StatusAccepted {
		t.Errorf("%s %s: %d", method, path, response.StatusCode)
	}
	return err
}

func (f furnished) status(t *testing.T) (s status) {
	t.Helper()
	if err := f.send(t, "GET", "/status", nil, &s, false); err != nil {
		t.Fatal(err)
	}
	return s
}

// left are the volumes that are there, sorted.
func (f furnished) left(t *testing.T) []string {
	t.Helper()
	var ids []string
	for _, v := range must[[]godo.Volume](t)(f.client.Storage.ListVolumes(t.Context(), nil)) {
		if len(v.DropletIDs) != 0 {
			t.Errorf("still attached: %+v", v)
		}
		ids = append(ids, v.ID)
	}
	return ids
}

func TestSelectiveDestroy(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	f := furnish(t, serve(t, s), s)
	if got := must[*godo.Droplet](t)(f.client.Droplets.Get(t.Context(), f.droplet.ID)); len(got.VolumeIDs) != 2 {
		t.Errorf("volumes of the Droplet %v", got.VolumeIDs)
	}
	associated := must[*godo.DropletAssociatedResources](t)(f.client.Droplets.ListAssociatedResourcesForDeletion(t.Context(), f.droplet.ID))
	if len(associated.Volumes) != 2 || len(associated.VolumeSnapshots) != 2 || len(associated.Snapshots) != 1 || associated.Snapshots[0].ID != f.image || associated.Volumes[0].Cost == "" {
		t.Errorf("associated %+v", associated)
	}
	err := f.send(t, "DELETE", "/selective", map[string]any{"volumes": []string{"none"}}, nil, false)
	refusal(t, err, 404, "")
	if err := f.send(t, "DELETE", "/selective", map[string]any{"volumes": f.volumes[:1], "volume_snapshots": f.snapshots[1:]}, nil, false); err != nil {
		t.Fatal(err)
	}
	got := f.status(t)
	if got.CompletedAt == nil || got.Failures != 0 || got.Droplet.ID != strconv.Itoa(f.droplet.ID) || got.Droplet.Name != "a" || got.Droplet.DestroyedAt == nil ||
		len(got.Resources.Volumes) != 1 || got.Resources.Volumes[0].ID != f.volumes[0] || got.Resources.Volumes[0].DestroyedAt == nil ||
		len(got.Resources.VolumeSnapshots) != 1 || got.Resources.VolumeSnapshots[0].ID != f.snapshots[1] || len(got.Resources.Snapshots) != 0 {
		t.Errorf("status %+v", got)
	}
	if left := f.left(t); !slices.Equal(left, f.volumes[1:]) {
		t.Errorf("left %v of %v", left, f.volumes)
	}
	_, _, err = f.client.Droplets.Get(t.Context(), f.droplet.ID)
	refusal(t, err, 404, "")
	if images := must[[]godo.Image](t)(f.client.Images.ListUser(t.Context(), nil)); len(images) != 1 {
		t.Errorf("images %+v", images)
	}
}

func TestDangerousDestroy(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	f := furnish(t, serve(t, s), s)
	refusal(t, f.send(t, "DELETE", "/dangerous", nil, nil, false), 400, "X-Dangerous")
	if err := f.send(t, "DELETE", "/dangerous", nil, nil, true); err != nil {
		t.Fatal(err)
	}
	if left := f.left(t); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	objects := s.Objects()
	if len(objects.Machines)+len(objects.Volumes)+len(objects.Snapshots) != 0 {
		t.Errorf("objects %+v", objects)
	}
}

// TestFailedDestroy: the Droplet goes, its volume doesn't; a retry mends it.
func TestFailedDestroy(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	f := furnish(t, serve(t, s), s)
	addFault(t, s, emulator.Rule{Method: "DELETE", Path: "*/selective", Kind: emulator.KindFailAction})
	if err := f.send(t, "DELETE", "/selective", map[string]any{"volumes": f.volumes[:1]}, nil, false); err != nil {
		t.Fatal(err)
	}
	got := f.status(t)
	if got.CompletedAt == nil || got.Failures != 1 || got.Droplet.DestroyedAt == nil || got.Resources.Volumes[0].DestroyedAt != nil || !strings.Contains(got.Resources.Volumes[0].ErrorMessage, "failed") {
		t.Errorf("status %+v", got)
	}
	if left := f.left(t); len(left) != 2 {
		t.Errorf("left %v", left)
	}
	if err := f.send(t, "POST", "/retry", nil, nil, false); err != nil {
		t.Fatal(err)
	}
	if got := f.status(t); got.Failures != 0 || got.Resources.Volumes[0].DestroyedAt == nil || got.Resources.Volumes[0].ErrorMessage != "" {
		t.Errorf("status after the retry %+v", got)
	}
	if left := f.left(t); !slices.Equal(left, f.volumes[1:]) {
		t.Errorf("left %v", left)
	}

	// Without resources it is the Droplet that fails, and stays.
	other := furnished{client: f.client, service: s, droplet: must[*godo.Droplet](t)(f.client.Droplets.Create(t.Context(), small("b")))}
	addFault(t, s, emulator.Rule{Method: "DELETE", Path: "*/selective", Kind: emulator.KindFailAction})
	if err := other.send(t, "DELETE", "/selective", map[string]any{}, nil, false); err != nil {
		t.Fatal(err)
	}
	if got := other.status(t); got.Failures != 1 || got.Droplet.ErrorMessage == "" || len(s.Droplets()) != 1 {
		t.Errorf("status %+v", got)
	}
}

// TestDestroyTakesTime: it is an event, only one runs at a time, and the state
// file keeps it.
func TestDestroyTakesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := digitalocean.Options{Boot: 40 * time.Second}
		s := digitalocean.New(options)
		client := godo.NewClient(&http.Client{Transport: authorized{emulator.Transport(s)}})
		made := must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), small("a")))
		f := furnished{client: client, service: s, droplet: made}
		refusal(t, f.send(t, "DELETE", "/selective", map[string]any{}, nil, false), 422, "pending event")
		<-time.After(40 * time.Second)
		v := must[*godo.Volume](t)(client.Storage.CreateVolume(t.Context(), &godo.VolumeCreateRequest{Name: "data", Region: "fra1", SizeGigaBytes: 10}))
		must[*godo.Action](t)(client.StorageActions.Attach(t.Context(), v.ID, made.ID))
		<-time.After(40 * time.Second)
		if err := f.send(t, "DELETE", "/selective", map[string]any{"volumes": []string{v.ID}}, nil, false); err != nil {
			t.Fatal(err)
		}
		if got := f.status(t); got.CompletedAt != nil || got.Droplet.DestroyedAt != nil || got.Resources.Volumes[0].DestroyedAt != nil {
			t.Errorf("status at once %+v", got)
		}
		refusal(t, f.send(t, "POST", "/retry", nil, nil, false), 409, "already")
		snapshot, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		next := digitalocean.New(options)
		if err := next.Restore(snapshot); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second)
		for name, s := range map[string]*digitalocean.Service{"first": s, "restored": next} {
			f.client = godo.NewClient(&http.Client{Transport: authorized{emulator.Transport(s)}})
			got := f.status(t)
			if got.CompletedAt == nil || got.Droplet.DestroyedAt == nil || got.Resources.Volumes[0].DestroyedAt == nil || len(s.Droplets()) != 0 || len(s.Objects().Volumes) != 0 {
				t.Errorf("%s: status later %+v", name, got)
			}
		}
	})
}
