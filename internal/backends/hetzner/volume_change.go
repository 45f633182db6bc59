// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Mark implements [backends.VolumeStore] with one PUT, which replaces all labels, so
// that those that aren't ours are sent along.
func (v volumes) Mark(ctx context.Context, o backends.Volume, marks backends.Marks) (backends.Volume, error) {
	what := "Labelling " + calledVolume(o)
	id, err := objectNumber(what, o.ID)
	if err != nil {
		return o, err
	}
	labels := v.marks.write(o.Labels, marks)
	updated, err := request(ctx, backends.Idempotent, what,
		func(ctx context.Context) (*hcloud.Volume, *hcloud.Response, error) {
			updated, answer, err := v.api.Volume.Update(ctx, &hcloud.Volume{ID: id}, hcloud.VolumeUpdateOpts{Labels: labels})
			if err == nil && succeeded(answer) && updated.ID != id {
				err = errNoObject
			}
			return updated, answer, err
		})
	if err != nil {
		return o, err
	}
	return v.volume(updated), nil
}

// Attach implements [backends.Volumes]. The guest is not told to mount the volume.
func (v volumes) Attach(ctx context.Context, o backends.Volume, machine string) error {
	what := fmt.Sprintf("Attaching %s to server %s", calledVolume(o), machine)
	id, err := objectNumber(what, o.ID)
	if err != nil {
		return err
	}
	server, err := objectNumber(what, machine)
	if err != nil {
		return err
	}
	err = v.act(ctx, what, func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
		return v.api.Volume.Attach(ctx, &hcloud.Volume{ID: id}, &hcloud.Server{ID: server})
	}, acceptOnly)
	isGone := backends.HasCode(err, backends.NotFound)
	if !isGone && !hasAPICode(err, codeServiceError, codeVolumeAttached) {
		return err
	}
	// What the refusal is about shows the volume, not its text.
	now, readErr := v.Get(ctx, o.ID)
	switch {
	case readErr != nil && isGone:
		return readErr
	case readErr != nil:
		return fmt.Errorf("%w (reading the volume failed: %w)", err, readErr)
	case now.AttachedTo(machine):
		return nil // by an earlier try whose answer was lost, or long ago
	case isGone:
		e := plain(err)
		e.Code, e.Reason = backends.ProviderError, backends.ReasonInvalid
		e.Remedy = fmt.Sprintf("There is no server %s in the account's project.", machine)
		return e
	case len(now.Machines) > 0:
		e := backends.Errorf(backends.InvalidState, "%s: it is attached to server %s.", what, strings.Join(now.Machines, ", "))
		e.Details, e.Err = plain(err).Details, err
		return e.WithRemedy("Detach it there first.")
	}
	return err
}

// Detach implements [backends.Volumes]. The API's call names no server, so the volume
// is looked at first: it may be attached to another one meanwhile, and stays there.
func (v volumes) Detach(ctx context.Context, o backends.Volume, machine string) error {
	what := fmt.Sprintf("Detaching %s from server %s", calledVolume(o), machine)
	id, err := objectNumber(what, o.ID)
	if err != nil {
		return err
	}
	server, err := objectNumber(what, machine)
	if err != nil {
		return err
	}
	elsewhere := backends.Errorf(backends.InvalidState, "%s: it isn't attached there.", what)
	err = v.act(ctx, what, func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
		now, answer, err := v.read(ctx, id)
		switch {
		case err != nil || !succeeded(answer):
			return nil, answer, err
		case now.Server == nil || now.Server.ID != server:
			return nil, answer, elsewhere
		}
		return v.api.Volume.Detach(ctx, &hcloud.Volume{ID: id})
	}, acceptOnly)
	if errors.Is(err, elsewhere) {
		return nil
	}
	if hasAPICode(err, codeServiceError) {
		if now, readErr := v.Get(ctx, o.ID); readErr == nil && !now.AttachedTo(machine) {
			return nil
		}
	}
	return err
}

// Resize implements [backends.VolumeStore]. A volume that is as large already, by an
// earlier try whose answer was lost, is refused by the API and fine here.
func (v volumes) Resize(ctx context.Context, o backends.Volume, sizeGiB int64) error {
	what := fmt.Sprintf("Growing %s to %d GiB", calledVolume(o), sizeGiB)
	id, err := objectNumber(what, o.ID)
	if err != nil {
		return err
	}
	if issue := checkVolumeSize(backends.VolumeSpec{SizeGiB: sizeGiB}); issue != nil {
		return issue
	}
	err = v.act(ctx, what, func(ctx context.Context) (*hcloud.Action, *hcloud.Response, error) {
		return v.api.Volume.Resize(ctx, &hcloud.Volume{ID: id}, int(sizeGiB))
	}, acceptOnly)
	if hasAPICode(err, codeInvalidInput) {
		if now, readErr := v.Get(ctx, o.ID); readErr == nil && now.SizeGiB == sizeGiB {
			return nil
		}
	}
	return err
}

// Delete implements [backends.VolumeStore]. The volume is gone when it returns.
func (v volumes) Delete(ctx context.Context, o backends.Volume) error {
	what := "Deleting " + calledVolume(o)
	id, err := objectNumber(what, o.ID)
	if err != nil {
		return err
	}
	_, err = request(ctx, backends.Idempotent, what,
		func(ctx context.Context) (struct{}, *hcloud.Response, error) {
			answer, err := v.api.Volume.Delete(ctx, &hcloud.Volume{ID: id})
			if err == nil && succeeded(answer) && answer.StatusCode != http.StatusNoContent {
				err = errNotDeleted
			}
			return struct{}{}, answer, err
		})
	switch {
	case backends.HasReason(err, backends.ReasonProtected):
		return plain(err).WithRemedy("Switch the volume's protection off in the Hetzner Console first.")
	case hasAPICode(err, codeServiceError):
		if now, readErr := v.Get(ctx, o.ID); readErr == nil && len(now.Machines) > 0 {
			e := backends.Errorf(backends.InvalidState, "%s: it is attached to server %s.", what, strings.Join(now.Machines, ", "))
			e.Details, e.Err = plain(err).Details, err
			return e.WithRemedy("Detach it first.")
		}
	}
	return err
}

// attaching are the commands of which the later one decides where a volume is.
var attaching = []string{"attach_volume", "detach_volume"}

// Diagnose implements [backends.VolumeDiagnoser] from the volume's newest actions, as
// that of machines does.
func (v volumes) Diagnose(ctx context.Context, o backends.Volume) error {
	what := "Reading the actions of " + calledVolume(o)
	id, err := objectNumber(what, o.ID)
	if err != nil {
		return err
	}
	actions, err := request(ctx, backends.Idempotent, what,
		func(ctx context.Context) ([]*hcloud.Action, *hcloud.Response, error) {
			return v.api.Volume.Action.ListFor(ctx, &hcloud.Volume{ID: id}, hcloud.ActionListOpts{
				ListOpts: hcloud.ListOpts{PerPage: perPage}, Sort: []string{"id:desc"},
			})
		})
	if err != nil {
		return err
	}
	if failed := newestFailure(actions, attaching); failed != nil {
		return actionFailed(calledVolume(o), failed)
	}
	return nil
}
