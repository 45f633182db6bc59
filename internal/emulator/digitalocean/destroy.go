// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// destroy is the last destruction of a Droplet with associated resources.
type destroy struct {
	Droplet int64  `json:"droplet"`
	Name    string `json:"name"`
	// Gone is when the Droplet went; zero: it is there.
	Gone time.Time `json:"gone"`
	// Completed is when the destruction ended; zero: it is going on.
	Completed time.Time `json:"completed"`
	// Volumes, VolumeSnapshots and Snapshots (of the Droplet) go with it.
	Volumes         []*doomed `json:"volumes"`
	VolumeSnapshots []*doomed `json:"volume_snapshots"`
	Snapshots       []*doomed `json:"snapshots"`
	// Error is why the Droplet couldn't be destroyed.
	Error string `json:"error"`
}

// doomed is a resource that is destroyed with a Droplet.
type doomed struct {
	ID    string    `json:"id"`
	Name  string    `json:"name"`
	Gone  time.Time `json:"gone"`
	Error string    `json:"error"`
}

func destroyRoutes() []route {
	const path = "/droplets/{id}/destroy_with_associated_resources"
	return []route{
		{"GET", path, http.StatusOK, listAssociates},
		{"DELETE", path + "/selective", http.StatusAccepted, destroySelected},
		{"DELETE", path + "/dangerous", http.StatusAccepted, destroyAll},
		{"GET", path + "/status", http.StatusOK, destroyStatus},
		{"POST", path + "/retry", http.StatusAccepted, retryDestroy},
	}
}

// associates are what can be destroyed with a Droplet: snapshots of it, volumes
// attached to it, and the snapshots of those.
func (c *call) associates(d *droplet) (snapshots, volumes, volumeSnapshots []wireAssociate) {
	snapshots = []wireAssociate{}
	for _, i := range c.p.dropletSnapshots(d.ID) {
		snapshots = append(snapshots, wireAssociate{ID: formatID(i.ID), Name: i.Name, Cost: fmt.Sprintf("%.2f", i.Size*0.06)})
	}
	volumes, volumeSnapshots = c.p.volumeAssociates(d.ID)
	return snapshots, volumes, volumeSnapshots
}

func listAssociates(c *call) (any, error) {
	d, err := c.droplet()
	if err != nil {
		return nil, err
	}
	snapshots, volumes, volumeSnapshots := c.associates(d)
	return map[string]any{
		"reserved_ips": []any{}, "floating_ips": []any{},
		"snapshots": snapshots, "volumes": volumes, "volume_snapshots": volumeSnapshots,
	}, nil
}

func destroySelected(c *call) (any, error) {
	d, err := c.droplet()
	if err != nil {
		return nil, err
	}
	var request struct {
		Volumes         []text `json:"volumes"`
		VolumeSnapshots []text `json:"volume_snapshots"`
		Snapshots       []text `json:"snapshots"`
		ReservedIPs     []text `json:"reserved_ips"`
		FloatingIPs     []text `json:"floating_ips"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if len(request.ReservedIPs)+len(request.FloatingIPs) > 0 {
		return nil, notFound()
	}
	snapshots, volumes, volumeSnapshots := c.associates(d)
	w := &destroy{Droplet: d.ID, Name: d.Name}
	for _, kind := range []struct {
		wanted []text
		known  []wireAssociate
		chosen *[]*doomed
	}{
		{request.Snapshots, snapshots, &w.Snapshots},
		{request.Volumes, volumes, &w.Volumes},
		{request.VolumeSnapshots, volumeSnapshots, &w.VolumeSnapshots},
	} {
		for _, id := range kind.wanted {
			i := slices.IndexFunc(kind.known, func(a wireAssociate) bool { return a.ID == string(id) })
			if i < 0 {
				return nil, notFound()
			}
			*kind.chosen = append(*kind.chosen, &doomed{ID: kind.known[i].ID, Name: kind.known[i].Name})
		}
	}
	return nil, c.beginDestroy(d, w)
}

// destroyAll needs a header that says that it is meant.
func destroyAll(c *call) (any, error) {
	d, err := c.droplet()
	if err != nil {
		return nil, err
	}
	if c.r.Header.Get("X-Dangerous") != "true" {
		return nil, badRequest("The X-Dangerous header must be true to destroy all associated resources.")
	}
	snapshots, volumes, volumeSnapshots := c.associates(d)
	doom := func(all []wireAssociate) []*doomed {
		chosen := []*doomed{}
		for _, a := range all {
			chosen = append(chosen, &doomed{ID: a.ID, Name: a.Name})
		}
		return chosen
	}
	w := &destroy{Droplet: d.ID, Name: d.Name, Snapshots: doom(snapshots), Volumes: doom(volumes), VolumeSnapshots: doom(volumeSnapshots)}
	return nil, c.beginDestroy(d, w)
}

// beginDestroy starts a destruction, which is an event of the Droplet.
func (c *call) beginDestroy(d *droplet, w *destroy) error {
	if err := c.beginEvent(d); err != nil {
		return err
	}
	c.p.Destroys[d.ID] = w
	c.newAction(dropletAction("destroy", d, effect{Destroy: d.ID}), c.s.options.DeleteTime)
	return nil
}

// retryDestroy repeats the last destruction of a Droplet for what is left of it.
func retryDestroy(c *call) (any, error) {
	w := c.p.Destroys[c.number(0)]
	switch {
	case w == nil:
		return nil, notFound()
	case w.Completed.IsZero():
		return nil, conflict("A destroy is already in progress for this Droplet.")
	}
	d := c.p.Droplets[w.Droplet]
	if d != nil {
		if err := c.beginEvent(d); err != nil {
			return nil, err
		}
	} else {
		d = &droplet{ID: w.Droplet}
	}
	w.Completed = time.Time{}
	c.newAction(dropletAction("destroy", d, effect{Destroy: w.Droplet}), c.s.options.DeleteTime)
	return nil, nil
}

// failedDestroy is the error of a destruction that a fault lets fail.
const failedDestroy = "failed to destroy the resource"

// finishDestroy destroys the Droplet, which detaches its volumes, and then the
// resources. If the action failed, the resources stay, each with an error; the
// Droplet stays only if it is alone.
func (s *Service) finishDestroy(p *project, a *action) {
	w := p.Destroys[a.Effect.Destroy]
	if w == nil {
		return
	}
	w.Completed, w.Error = a.Settle, ""
	if a.Failed && len(w.Volumes)+len(w.VolumeSnapshots)+len(w.Snapshots) == 0 {
		w.Error = failedDestroy
		return
	}
	if d := p.Droplets[w.Droplet]; d != nil {
		p.remove(d)
		w.Gone = a.Settle
	}
	each := func(all []*doomed, remove func(id string) error) {
		for _, r := range all {
			if !r.Gone.IsZero() {
				continue
			}
			if a.Failed {
				r.Error = failedDestroy
				continue
			}
			if err := remove(r.ID); err != nil {
				r.Error = err.Error()
				continue
			}
			r.Gone, r.Error = a.Settle, ""
		}
	}
	each(w.Snapshots, func(id string) error {
		delete(p.Images, text(id).number())
		return nil
	})
	each(w.VolumeSnapshots, p.deleteVolumeSnapshot)
	each(w.Volumes, p.deleteVolume)
}

// wire is the state of one thing that goes.
func (r *doomed) wire() map[string]any {
	w := map[string]any{"id": r.ID, "name": r.Name}
	if !r.Gone.IsZero() {
		w["destroyed_at"] = stamp(r.Gone)
	}
	if r.Error != "" {
		w["error_message"] = r.Error
	}
	return w
}

// destroyStatus tells how the last destruction of a Droplet goes or went, also
// when the Droplet is gone.
func destroyStatus(c *call) (any, error) {
	w := c.p.Destroys[c.number(0)]
	if w == nil {
		return nil, notFound()
	}
	failures := 0
	each := func(all []*doomed) []any {
		wires := []any{}
		for _, r := range all {
			if r.Error != "" {
				failures++
			}
			wires = append(wires, r.wire())
		}
		return wires
	}
	self := &doomed{ID: formatID(w.Droplet), Name: w.Name, Gone: w.Gone, Error: w.Error}
	if self.Error != "" {
		failures++
	}
	answer := map[string]any{
		"droplet": self.wire(),
		"resources": map[string]any{
			"reserved_ips": []any{}, "floating_ips": []any{},
			"snapshots": each(w.Snapshots), "volumes": each(w.Volumes), "volume_snapshots": each(w.VolumeSnapshots),
		},
	}
	if !w.Completed.IsZero() {
		answer["completed_at"] = stamp(w.Completed)
	}
	answer["failures"] = failures
	return answer, nil
}
