// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

const (
	// snapshotEvery is how often the API makes a snapshot of one volume
	// (https://docs.digitalocean.com/products/snapshots, "limits").
	snapshotEvery = 10 * time.Minute
	// firstSnapshotWait is the least wait after a refusal, doubled by each: so a time
	// that was worked out wrongly makes a few requests, not a storm (velero#6164).
	firstSnapshotWait = time.Second
)

// createSnapshot is the body of POST /v2/volumes/{id}/snapshots.
type createSnapshot struct {
	Name string   `json:"name"`
	Tags []string `json:"tags"`
}

// Make implements [backends.Snapshots] with one POST. When the volume had a snapshot
// less than ten minutes ago it waits until the next can be made, or says when that is
// where the operation ends before.
func (s snapshots) Make(ctx context.Context, spec backends.SnapshotSpec) (backends.Snapshot, error) {
	what := "Creating snapshot " + spec.Name
	if err := checkObject(what, spec.Volume); err != nil {
		return backends.Snapshot{}, plain(err).At("volume")
	}
	marks := spec.Marks
	marks.Complete = false
	body := &createSnapshot{Name: spec.Name, Tags: s.tags.write(marks)}
	for least := firstSnapshotWait; ; least *= 2 {
		answer, err := call(ctx, s.Client, backends.Making, what,
			request{method: http.MethodPost, path: at("volumes", spec.Volume, "snapshots"), body: body},
			func(a *snapshotAnswer) bool { return a.Snapshot != nil && isObject(a.Snapshot.ID) })
		switch {
		case err == nil:
			made := s.snapshot(answer.Snapshot)
			if made.Marks.Claim == "" {
				// An answer that came before the tags did: they are what was asked for.
				made.Marks = s.tags.read(body.Tags)
			}
			return made, nil
		case !tooSoon(err):
			return backends.Snapshot{}, s.explain(ctx, err, spec)
		}
		if err := s.awaitNext(ctx, what, spec.Volume, err, least); err != nil {
			return backends.Snapshot{}, err
		}
	}
}

// tooSoon tells whether a snapshot was refused because of the one before it.
func tooSoon(err error) bool { return says(err, http.StatusTooManyRequests, textRateLimited) }

// awaitNext waits until the next snapshot of a volume can be made. It fails at once
// when the operation ends before that.
func (s snapshots) awaitNext(ctx context.Context, what, volume string, refusal error, least time.Duration) error {
	caller := backends.Caller(ctx)
	have, err := s.OfVolume(caller, volume)
	if err != nil {
		return fmt.Errorf("%w (looking for the newest snapshot failed: %w)", plain(refusal), err)
	}
	var newest time.Time
	for _, o := range have {
		if o.Created.After(newest) {
			newest = o.Created
		}
	}
	every := cmp.Or(backends.AsError(refusal).RetryAfter, snapshotEvery)
	// The newest may be deleted since, and the clocks differ: what has passed already
	// says nothing.
	wait := backends.Scale(max(time.Until(newest.Add(every)), least))
	next := time.Now().Add(wait)
	if deadline, ok := caller.Deadline(); ok && next.After(deadline) {
		e := plain(refusal)
		e.Message = fmt.Sprintf("%s: DigitalOcean makes one snapshot of a volume every %s, so the next can be made at %s.",
			what, every, next.UTC().Format(time.RFC3339))
		e.Details["next"] = next.UTC().Format(time.RFC3339)
		e.RetryAfter = wait
		return e.WithRemedy("Apply again then, or allow the creation more time (timeouts).")
	}
	if err := backends.Sleep(caller, wait); err != nil {
		return errors.Join(refusal, err)
	}
	return nil
}

// explain adds to a refused create what only the wish tells.
func (s snapshots) explain(ctx context.Context, err error, spec backends.SnapshotSpec) error {
	e := backends.AsError(err)
	switch {
	case e == nil:
		return err
	case e.Code == backends.NotFound:
		// The snapshot doesn't exist yet: the volume doesn't.
		e = plain(err)
		e.Code, e.Reason = backends.ProviderError, backends.ReasonInvalid
		return e.At("volume").WithRemedy("Check that the volume %s still exists.", spec.Volume)
	case e.Details["status"] != http.StatusConflict:
		return err
	}
	have, lookErr := s.OfVolume(ctx, spec.Volume)
	if lookErr != nil {
		return fmt.Errorf("%w (looking for the name's holder failed: %w)", plain(err), lookErr)
	}
	for _, o := range have {
		if o.Name == spec.Name {
			return &backends.NameTaken{Holder: o.About()}
		}
	}
	return &backends.NameTaken{Refusal: plain(err).WithRemedy("Run again, or choose another name: the API shows no snapshot of that name of the volume %s.", spec.Volume)}
}
