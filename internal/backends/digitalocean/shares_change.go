// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// nfsAction is the answer to an action of a share.
type nfsAction struct {
	Action *godo.NfsAction `json:"action"`
}

// The ids of these actions are text: numbers once, UUIDs since 2026.
func (a *nfsAction) good() bool { return a.Action != nil && a.Action.ID != "" }

// failed is the error of an action that has failed by the time it is answered.
func (a *nfsAction) failed(what string) error {
	if a.Action.Status != godo.NfsActionStatusFailed && a.Action.Status != actionFailed {
		return nil
	}
	kind, id := backends.Printable(a.Action.Type), backends.Printable(a.Action.ID)
	e := backends.Errorf(backends.ProviderError, "%s: DigitalOcean's action %s (%s) failed, and the API doesn't say why.", what, kind, id)
	e.Reason = backends.ReasonAction
	e.Details = map[string]any{"action_id": id, "type": kind}
	return e
}

// inRegion is the query of requests about one share or snapshot. The API keeps it
// for older clients.
func inRegion(region string) url.Values {
	if region == "" {
		return nil
	}
	return url.Values{"region": {region}}
}

// Mark implements [backends.VolumeStore]. A share's marks are in its name.
func (shares) Mark(_ context.Context, v backends.Volume, _ backends.Marks) (backends.Volume, error) {
	return v, backends.Errorf(backends.Unsupported, "The marks of a share of DigitalOcean are in its name, which can't be changed.")
}

// Resize implements [backends.VolumeStore]. A share that is as large already, by an
// earlier try whose answer was lost, is refused by the API and fine here.
func (s shares) Resize(ctx context.Context, v backends.Volume, sizeGiB int64) error {
	what := fmt.Sprintf("Growing %s to %d GiB", calledVolume(v), sizeGiB)
	if err := checkObject(what, v.ID); err != nil {
		return err
	}
	if issue := checkShareBounds(sizeGiB); issue != nil {
		return issue
	}
	answer, err := call(ctx, s.Client, backends.Idempotent, what, request{
		method: http.MethodPost, path: at("nfs", v.ID, "actions"),
		body: &godo.NfsActionRequest{Type: "resize", Region: v.Region, Params: &godo.NfsResizeParams{SizeGib: uint64(sizeGiB)}},
	}, (*nfsAction).good)
	if backends.HasReason(err, backends.ReasonInvalid) {
		if now, readErr := s.Get(ctx, v.ID); readErr == nil && now.SizeGiB == sizeGiB {
			return nil
		}
	}
	if err != nil {
		return err
	}
	s.shareActions.Store(v.ID, answer.Action.ID)
	return answer.failed(what)
}

// Delete implements [backends.VolumeStore]. It never asks that snapshots go too.
func (s shares) Delete(ctx context.Context, v backends.Volume) error {
	what := "Deleting " + calledVolume(v)
	if err := checkObject(what, v.ID); err != nil {
		return err
	}
	var answer nfsAction
	err := backends.Retry(ctx, backends.Idempotent, func(ctx context.Context) error {
		answer = nfsAction{}
		return s.try(ctx, what, request{method: http.MethodDelete, path: at("nfs", v.ID), query: inRegion(v.Region)}, &answer, nil)
	})
	if err == nil && answer.good() { // older versions of the API answer nothing
		s.shareActions.Store(v.ID, answer.Action.ID)
	}
	if e := backends.AsError(err); e != nil && e.Details["status"] == http.StatusPreconditionFailed {
		e = plain(err)
		e.Code = backends.InvalidState
		return e.WithRemedy("Delete the share's snapshots first: they don't outlive it.")
	}
	return err
}

// Diagnose implements [backends.VolumeDiagnoser] from the last action of the share
// that this process has started: the API lists none.
func (s shares) Diagnose(ctx context.Context, v backends.Volume) error {
	id, ok := s.shareActions.Load(v.ID)
	if !ok {
		return nil
	}
	what := "Reading the action of " + calledVolume(v)
	answer, err := call(ctx, s.Client, backends.Idempotent, what,
		request{method: http.MethodGet, path: at("nfs", "actions", id)}, (*nfsAction).good)
	if err != nil {
		return err
	}
	return answer.failed(calledVolume(v))
}
