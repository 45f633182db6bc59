// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// What refusals of volume actions say; godo has constants for some of them. See
// [textPendingEvent].
const (
	textAlreadyAttached = "already attached"                 // 422, whatever it is attached to
	textNotAttached     = "attachment not found"             // 422, also when no Droplet is named
	textTooMany         = "cannot attach more"               // 422
	textResizingOff     = "resizing is temporarily disabled" // 422, of a Droplet's volumes
)

// volumesPerDroplet is the limit since August 2024 (openapi#902).
const volumesPerDroplet = 15

// Mark implements [backends.VolumeStore] by the tags that differ, as
// [Client.MarkMachine] does.
func (v volumes) Mark(ctx context.Context, o backends.Volume, marks backends.Marks) (backends.Volume, error) {
	what := "Tagging " + calledVolume(o)
	if err := checkObject(what, o.ID); err != nil {
		return o, err
	}
	seen := o
	err := v.retag(ctx, what, tagged{godo.VolumeResourceType, o.ID}, o.Marks, marks,
		func(ctx context.Context) ([]string, error) {
			found, err := call(ctx, v.Client, backends.Idempotent, what, request{method: http.MethodGet, path: at("volumes", o.ID)},
				func(a *volumeAnswer) bool { return a.Volume != nil && a.Volume.ID == o.ID })
			if err != nil {
				return nil, err
			}
			seen = v.volume(found.Volume)
			return found.Volume.Tags, nil
		})
	if err != nil {
		return seen, err
	}
	seen.Marks = backends.Marks{}
	if marks.Managed {
		seen.Marks = marks
	}
	return seen, nil
}

// volumeAction is the body of POST /v2/volumes/{id}/actions. The Droplet is always
// named: without it a detach finds no attachment (godo#136).
type volumeAction struct {
	Type          string `json:"type"`
	DropletID     int    `json:"droplet_id,omitempty"`
	SizeGigabytes int64  `json:"size_gigabytes,omitempty"`
	Region        string `json:"region,omitempty"`
}

// change starts an action of a volume. A Droplet with a pending event is waited for
// by the retry policy. settle says what a refusal means; it is asked within each
// try, since a try's refusal may be the success of one whose answer was lost.
func (v volumes) change(ctx context.Context, what string, o backends.Volume, action volumeAction,
	settle func(ctx context.Context, refusal error) error) error {
	if err := checkObject(what, o.ID); err != nil {
		return err
	}
	action.Region = o.Region
	return backends.Retry(ctx, backends.Idempotent, func(ctx context.Context) error {
		var answer actionAnswer
		err := v.try(ctx, what, request{method: http.MethodPost, path: at("volumes", o.ID, "actions"), body: action}, &answer, answer.good)
		switch {
		case err == nil && answer.Action.Status == actionFailed:
			return actionError(what, answer.Action)
		case err == nil:
			return nil
		}
		return settle(ctx, err)
	})
}

// Attach implements [backends.Volumes].
func (v volumes) Attach(ctx context.Context, o backends.Volume, machine string) error {
	what := fmt.Sprintf("Attaching %s to Droplet %s", calledVolume(o), machine)
	droplet, err := dropletID(what, machine)
	if err != nil {
		return err
	}
	return v.change(ctx, what, o, volumeAction{Type: "attach", DropletID: droplet}, func(ctx context.Context, refusal error) error {
		isGone := backends.HasCode(refusal, backends.NotFound)
		switch {
		case says(refusal, http.StatusUnprocessableEntity, textTooMany):
			e := plain(refusal).WithRemedy("A Droplet takes %d volumes: detach one, or attach this one elsewhere.", volumesPerDroplet)
			e.Reason = backends.ReasonQuota
			return e
		case !isGone && !says(refusal, http.StatusUnprocessableEntity, textAlreadyAttached):
			return refusal
		}
		found, err := v.read(ctx, what, o.ID)
		if err != nil {
			return err
		}
		switch now := v.volume(found); {
		case now.AttachedTo(machine):
			return nil
		case isGone:
			return v.noDroplet(ctx, what, refusal, droplet)
		case len(now.Machines) > 0:
			e := backends.Errorf(backends.InvalidState, "%s: it is attached to Droplet %s.", what, strings.Join(now.Machines, ", "))
			e.Details, e.Err = plain(refusal).Details, refusal
			return e.WithRemedy("Detach it there first.")
		}
		// Attached says the one, to nothing the other: it is on its way somewhere.
		e := plain(refusal)
		e.Reason, e.Retryable = backends.ReasonLocked, true
		return e
	})
}

// noDroplet is a 404 that isn't the volume's: the Droplet's, unless it was just made
// and is hidden a while.
func (v volumes) noDroplet(ctx context.Context, what string, refusal error, machine int) error {
	err := v.try(ctx, what, request{method: http.MethodGet, path: at("droplets", machine)}, nil, nil)
	e := plain(refusal)
	switch {
	case err == nil:
		e.Code, e.Retryable = backends.ProviderError, true
		return e
	case !backends.HasCode(err, backends.NotFound):
		return err
	}
	e.Code, e.Reason = backends.ProviderError, backends.ReasonInvalid
	return e.WithRemedy("There is no Droplet %d in the account's team.", machine)
}

// Detach implements [backends.Volumes]. That the API finds no attachment is taken for
// detached, even where the volume still shows one: it is behind (doctl#207).
func (v volumes) Detach(ctx context.Context, o backends.Volume, machine string) error {
	what := fmt.Sprintf("Detaching %s from Droplet %s", calledVolume(o), machine)
	droplet, err := dropletID(what, machine)
	if err != nil {
		return err
	}
	return v.change(ctx, what, o, volumeAction{Type: "detach", DropletID: droplet}, func(ctx context.Context, refusal error) error {
		switch {
		case says(refusal, http.StatusUnprocessableEntity, textNotAttached):
			return nil
		case !backends.HasCode(refusal, backends.NotFound):
			return refusal
		}
		found, err := v.read(ctx, what, o.ID)
		switch {
		case err != nil:
			return err
		case v.volume(found).AttachedTo(machine):
			return v.noDroplet(ctx, what, refusal, droplet)
		}
		return nil
	})
}

// Resize implements [backends.VolumeStore]. A volume that is as large already, by an
// earlier try whose answer was lost, is refused by the API and fine here.
func (v volumes) Resize(ctx context.Context, o backends.Volume, sizeGiB int64) error {
	what := fmt.Sprintf("Growing %s to %d GiB", calledVolume(o), sizeGiB)
	if sizeGiB < minVolumeSize || sizeGiB > maxVolumeSize {
		return sizeIssue("DigitalOcean's volumes have %d to %d GiB, not %d.", minVolumeSize, maxVolumeSize, sizeGiB)
	}
	return v.change(ctx, what, o, volumeAction{Type: "resize", SizeGigabytes: sizeGiB}, func(ctx context.Context, refusal error) error {
		switch {
		case says(refusal, http.StatusUnprocessableEntity, textResizingOff):
			e := plain(refusal)
			e.Reason = ""
			return e.WithRemedy("The volume keeps its size. Apply again later.")
		case !backends.HasReason(refusal, backends.ReasonInvalid):
			return refusal
		}
		if found, err := v.read(ctx, what, o.ID); err == nil && found.SizeGigaBytes == sizeGiB {
			return nil
		}
		return refusal
	})
}

// Delete implements [backends.VolumeStore].
func (v volumes) Delete(ctx context.Context, o backends.Volume) error {
	what := "Deleting " + calledVolume(o)
	if err := checkObject(what, o.ID); err != nil {
		return err
	}
	if o.Protected {
		return protectedError(what)
	}
	err := v.tell(ctx, what, request{method: http.MethodDelete, path: at("volumes", o.ID)})
	if e := backends.AsError(err); e != nil && e.Details["status"] == http.StatusConflict {
		e = plain(err)
		e.Code = backends.InvalidState // "attached volume cannot be deleted"
		return e.WithRemedy("Detach it first.")
	}
	return err
}

// attaching are the types of actions of which the later one decides where a volume is.
var attaching = []string{"attach_volume", "detach_volume", "attach", "detach"}

// Diagnose implements [backends.VolumeDiagnoser] from the volume's actions, as
// [Client.Diagnose] does from a Droplet's.
func (v volumes) Diagnose(ctx context.Context, o backends.Volume) error {
	what := "Reading the actions of " + calledVolume(o)
	if err := checkObject(what, o.ID); err != nil {
		return err
	}
	actions, err := list(ctx, v.Client, what, at("volumes", o.ID, "actions"), nil, "actions", func(a godo.Action) bool { return a.ID > 0 })
	if err != nil {
		return err
	}
	slices.SortFunc(actions, func(a, b godo.Action) int { return b.ID - a.ID })
	seen := map[string]bool{}
	for i, a := range actions {
		kind := a.Type
		if slices.Contains(attaching, kind) {
			kind = attaching[0]
		}
		if !seen[kind] && a.Status == actionFailed {
			return actionError(calledVolume(o), &actions[i])
		}
		seen[kind] = true
	}
	return nil
}
