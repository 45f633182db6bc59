// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// goingSet are the Droplets that this process has told to go with volumes.
type goingSet struct {
	mu  sync.Mutex
	ids map[int]bool
}

func (s *goingSet) add(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = map[int]bool{}
	}
	s.ids[id] = true
}

func (s *goingSet) has(id int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[id]
}

// destroyRequest is the body of a selective destroy: what isn't named stays.
type destroyRequest struct {
	Volumes []string `json:"volumes"`
}

// DeleteMachineWith implements [backends.SelectiveDestroyer]. godo has no method for
// it. While another destroy of the Droplet runs (409), be it an earlier try of ours
// whose answer was lost, it is waited for.
func (c *Client) DeleteMachineWith(ctx context.Context, m backends.Machine, volumes []backends.Volume) error {
	what := "Deleting " + called(m) + " and its volumes"
	id, err := dropletID(what, m.ID)
	if err != nil {
		return err
	}
	if m.Protected {
		return protectedError(what)
	}
	body := destroyRequest{Volumes: []string{}}
	for _, v := range volumes {
		body.Volumes = append(body.Volumes, v.ID)
	}
	err = backends.Retry(ctx, backends.Idempotent, func(ctx context.Context) error {
		err := c.try(ctx, what, request{
			method: http.MethodDelete, path: at("droplets", id, "destroy_with_associated_resources", "selective"), body: body,
		}, nil, nil)
		if e := backends.AsError(err); e != nil && e.Details["status"] == http.StatusConflict {
			e = plain(e)
			e.Reason, e.Retryable = backends.ReasonLocked, true
			return e
		}
		return err
	})
	switch {
	case err == nil:
		c.going.add(id)
	case backends.HasCode(err, backends.NotFound):
		// The API says the same of a volume that isn't on this Droplet.
		if _, gone := c.droplet(ctx, what, m.ID); gone != nil {
			return gone
		}
		e := plain(err)
		e.Code, e.Reason = backends.ProviderError, backends.ReasonInvalid
		return e.WithRemedy("The Droplet is there: one of the volumes isn't attached to it any more. Plan again.")
	}
	return err
}

// destroyed is an object in the status of a destroy.
type destroyed struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	DestroyedAt *time.Time `json:"destroyed_at"`
	Error       string     `json:"error_message"`
}

type destroyStatus struct {
	Droplet   *destroyed `json:"droplet"`
	Resources struct {
		Volumes []destroyed `json:"volumes"`
	} `json:"resources"`
	CompletedAt *time.Time `json:"completed_at"`
	Failures    int        `json:"failures"`
}

// destroyFailure is why a destroy has ended without deleting everything; nil when it
// runs, has gone well, or nothing is known of it.
func (c *Client) destroyFailure(ctx context.Context, m backends.Machine, id int) error {
	what := "Reading how far the deletion of " + called(m) + " is"
	status, err := call(ctx, c, backends.Idempotent, what,
		request{method: http.MethodGet, path: at("droplets", id, "destroy_with_associated_resources", "status")},
		func(s *destroyStatus) bool { return s.Droplet != nil })
	if err != nil || status.CompletedAt == nil || status.Failures == 0 {
		return nil //nolint:nilerr // Not to know is no failure of the machine.
	}
	var failed []string
	if status.Droplet.DestroyedAt == nil && status.Droplet.Error != "" {
		failed = append(failed, "the Droplet: "+backends.Printable(status.Droplet.Error))
	}
	for _, v := range status.Resources.Volumes {
		if v.DestroyedAt == nil && v.Error != "" {
			failed = append(failed, fmt.Sprintf("the volume %s: %s", backends.Printable(v.Name), backends.Printable(v.Error)))
		}
	}
	e := backends.Errorf(backends.ProviderError, "DigitalOcean couldn't delete all of %s and its volumes: %s.",
		called(m), strings.TrimRight(strings.Join(failed, "; "), "."))
	if len(failed) == 0 {
		e.Message = fmt.Sprintf("DigitalOcean couldn't delete all of %s and its volumes, and doesn't say why.", called(m))
	}
	e.Reason = backends.ReasonAction
	return e.WithRemedy("Run again.")
}
