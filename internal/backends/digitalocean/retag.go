// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// tagged is an object that can have tags.
type tagged struct {
	kind godo.ResourceType
	id   string
}

// path is where the object is read.
func (o tagged) path() string {
	switch o.kind {
	case godo.VolumeResourceType:
		return at("volumes", o.id)
	case godo.VolumeSnapshotResourceType:
		return at("snapshots", o.id)
	default:
		return at("droplets", o.id)
	}
}

func (o tagged) body() *godo.TagResourcesRequest {
	return &godo.TagResourcesRequest{Resources: []godo.Resource{{ID: o.id, Type: o.kind}}}
}

// retag makes want the marks of an object that was last seen with was, and touches
// no other tag. Only a mark without a value that comes to what is there, such as
// the completion mark, is written without a look: that is one call. Otherwise
// current reads the object's tags, since was can't show a second claim.
//
// New tags go on before old ones go off, and the completion mark goes on last and
// off first, so that wherever this ends the object has a claim, and isn't complete
// without being what it is said to be. It is safe to call again.
func (c *Client) retag(ctx context.Context, what string, o tagged, was, want backends.Marks,
	current func(context.Context) ([]string, error)) error {
	wanted := c.tags.write(want)
	have := c.tags.write(was)
	if !c.onlyAdds(have, wanted) {
		tags, err := current(ctx)
		if err != nil {
			return err
		}
		have = nil
		for _, tag := range tags {
			if c.tags.ours(tag) && !c.tags.isProtected([]string{tag}) {
				have = append(have, strings.ToLower(tag))
			}
		}
	}
	for _, tag := range wanted {
		if slices.Contains(have, tag) {
			continue
		}
		if err := c.tagWith(ctx, what, o, tag); err != nil {
			return err
		}
	}
	for _, tag := range c.removable(have) {
		if slices.Contains(wanted, tag) {
			continue
		}
		if err := c.untag(ctx, what, o, tag); err != nil {
			return err
		}
	}
	return nil
}

// onlyAdds tells whether all that changes is that marks without a value come to what
// is there, at least one: where nothing changes, the look tells whether the object is.
func (c *Client) onlyAdds(have, wanted []string) bool {
	for _, tag := range have {
		if !slices.Contains(wanted, tag) {
			return false
		}
	}
	if len(wanted) == len(have) {
		return false
	}
	plain := []string{c.tags.name(tagComplete), c.tags.name(tagGoes)}
	for _, tag := range wanted {
		if !slices.Contains(have, tag) && !slices.Contains(plain, tag) {
			return false
		}
	}
	return slices.Contains(have, c.tags.name())
}

// removable are tags in the order in which they are taken off.
func (c *Client) removable(tags []string) []string {
	first := []string{c.tags.name(tagComplete), c.tags.name()}
	out := slices.Clone(tags)
	rank := func(tag string) int {
		if i := slices.Index(first, tag); i >= 0 {
			return i
		}
		return len(first)
	}
	slices.SortStableFunc(out, func(a, b string) int { return rank(a) - rank(b) })
	return out
}

// isOwn tells whether a tag is of one object alone: then it doesn't exist before
// the object has it, and it is gone with the object.
func (c *Client) isOwn(tag string) bool {
	return slices.ContainsFunc([]string{tagKey, tagDigest, tagClaim},
		func(mark string) bool { return strings.HasPrefix(tag, c.tags.name(mark)+":") })
}

// sharedTags remembers which tags exist. The first use of one is made alone: of a
// hundred machines that come up together only one finds that a tag must be made.
type sharedTags struct {
	mu    sync.Mutex
	known map[string]bool
	gates map[string]chan struct{}
}

func (s *sharedTags) exists(tag string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[tag]
}

func (s *sharedTags) set(tag string, exists bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]bool{}
	}
	s.known[tag] = exists
}

// enter waits for the tag's gate.
func (s *sharedTags) enter(ctx context.Context, tag string) (leave func(), err error) {
	s.mu.Lock()
	gate := s.gates[tag]
	if gate == nil {
		gate = make(chan struct{}, 1)
		if s.gates == nil {
			s.gates = map[string]chan struct{}{}
		}
		s.gates[tag] = gate
	}
	s.mu.Unlock()
	select {
	case gate <- struct{}{}:
		return func() { <-gate }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// tagWith puts a tag on an object and makes the tag if there is none: POST
// …/resources answers 404 then, as it does when there is no such object.
func (c *Client) tagWith(ctx context.Context, what string, o tagged, tag string) error {
	put := func() error {
		return c.tell(ctx, what,
			request{method: http.MethodPost, path: at("tags", tag, "resources"), body: o.body()})
	}
	if c.isOwn(tag) {
		var err error
		for range 2 { // another account's sweep may take the tag before it is on the object
			if err := c.makeTag(ctx, what, tag); err != nil {
				return err
			}
			if err = put(); !backends.HasCode(err, backends.NotFound) {
				return err
			}
		}
		return c.confirm(ctx, what, o, err)
	}
	if c.shared.exists(tag) {
		if err := put(); !backends.HasCode(err, backends.NotFound) {
			return err
		}
		c.shared.set(tag, false)
	}
	leave, err := c.shared.enter(ctx, tag)
	if err != nil {
		return err
	}
	if c.shared.exists(tag) {
		leave() // those who waited for the first go together
		return c.confirm(ctx, what, o, put())
	}
	defer leave()
	err = put()
	if backends.HasCode(err, backends.NotFound) {
		if err := c.makeTag(ctx, what, tag); err != nil {
			return err
		}
		err = c.confirm(ctx, what, o, put())
	}
	if err == nil {
		c.shared.set(tag, true)
	}
	return err
}

// confirm tells what it means that an object can't be given a tag that exists: that
// it is gone only when it can't be read either. Shortly after its making it may be
// hidden a while.
func (c *Client) confirm(ctx context.Context, what string, o tagged, err error) error {
	if !backends.HasCode(err, backends.NotFound) {
		return err
	}
	if gone := c.tell(ctx, what, request{method: http.MethodGet, path: o.path()}); gone != nil {
		return gone
	}
	e := plain(err)
	e.Code, e.Ambiguous = backends.ProviderError, true
	return e.WithRemedy("Run again.")
}

// makeTag makes a tag. One that exists is answered with, or refused with a text that
// says so.
func (c *Client) makeTag(ctx context.Context, what, tag string) error {
	err := c.tell(ctx, what,
		request{method: http.MethodPost, path: at("tags"), body: &godo.TagCreateRequest{Name: tag}})
	if says(err, http.StatusUnprocessableEntity, "already", "taken") || says(err, http.StatusConflict, "") {
		return nil
	}
	return err
}

// untag takes a tag from an object. A claim goes altogether, since nobody else has
// it; of the other tags of one object's own nothing is left when nothing else
// carries them.
func (c *Client) untag(ctx context.Context, what string, o tagged, tag string) error {
	if strings.HasPrefix(tag, c.tags.name(tagClaim)+":") {
		return c.deleteTag(ctx, what, tag)
	}
	err := c.tell(ctx, what,
		request{method: http.MethodDelete, path: at("tags", tag, "resources"), body: o.body()})
	if err != nil && !backends.HasCode(err, backends.NotFound) {
		return err
	}
	if c.isOwn(tag) {
		return c.tidy(ctx, tag)
	}
	return nil
}

// deleteTag deletes a tag, which takes it from everything.
func (c *Client) deleteTag(ctx context.Context, what, tag string) error {
	err := c.tell(ctx, what, request{method: http.MethodDelete, path: at("tags", tag)})
	if backends.HasCode(err, backends.NotFound) {
		return nil
	}
	return err
}

// Tidy implements [backends.Tidier]: tags outlive what carries them, so that each
// object would leave three behind. A tag that something carries stays. Claims are
// random and digests salted with the key, so where nothing carries the key nothing
// carries those: of the three only the key is looked at, which makes four calls of
// six. The key goes last: as long as it is there, all can be tidied again.
func (c *Client) Tidy(ctx context.Context, marks backends.Marks) error {
	key, claim, digest := c.tagOf(tagKey, marks.Key), c.tagOf(tagClaim, marks.Claim), c.tagOf(tagDigest, marks.Digest)
	remove := c.tidy
	if key != "" {
		what := "Removing the tag " + key
		carried, err := c.isCarried(ctx, what, key)
		if err != nil {
			return err
		}
		if !carried {
			remove = func(ctx context.Context, tag string) error { return c.deleteTag(ctx, "Removing the tag "+tag, tag) }
		}
	}
	for _, tag := range []string{claim, digest, key} {
		if tag == "" {
			continue
		}
		if err := remove(ctx, tag); err != nil {
			return err
		}
	}
	for _, tag := range []string{c.tagOf(tagAccount, marks.Account), c.tagOf(tagPool, marks.Pool), c.tagOf(tagVolume, marks.Volume)} {
		if tag == "" {
			continue
		}
		if err := c.tidy(ctx, tag); err != nil {
			return err
		}
	}
	if marks.Account == "" {
		return nil
	}
	if err := c.sweepTags(ctx); err != nil {
		return err
	}
	// The last account of a project takes along what all objects share.
	for _, tag := range []string{c.tags.name(tagComplete), c.tags.name(tagGoes), c.tags.name(tagProtected), c.tags.name()} {
		if err := c.tidy(ctx, tag); err != nil {
			return err
		}
	}
	return nil
}

// sweepTags deletes those tags of single objects that nothing carries: of an object
// that something else deleted, or whose deletion a run began and didn't see the end of.
// An account that goes pays for the list of all tags.
func (c *Client) sweepTags(ctx context.Context) error {
	type tag struct {
		Name      string `json:"name"`
		Resources *struct {
			Count *int `json:"count"`
		} `json:"resources"`
	}
	found, err := list(ctx, c, "Listing the tags", at("tags"), nil, "tags", func(t tag) bool { return t.Name != "" })
	if err != nil {
		return err
	}
	for _, t := range found {
		if !c.isOwn(t.Name) || t.Resources == nil || t.Resources.Count == nil || *t.Resources.Count > 0 {
			continue
		}
		if err := c.deleteTag(ctx, "Removing the tag "+t.Name, t.Name); err != nil {
			return err
		}
	}
	return nil
}

// tagOf is the tag of a mark; "" when there is none, or none could be.
func (c *Client) tagOf(mark, value string) string {
	tag := c.tags.name(mark, value)
	if value == "" || len(tag) > maxTag || !tagForm.MatchString(tag) {
		return ""
	}
	return tag
}

// tagAnswer is a tag with the number of objects of all kinds that carry it.
type tagAnswer struct {
	Tag *struct {
		Name      string `json:"name"`
		Resources *struct {
			Count *int `json:"count"`
		} `json:"resources"`
	} `json:"tag"`
}

// isCarried tells whether anything carries a tag.
func (c *Client) isCarried(ctx context.Context, what, tag string) (bool, error) {
	found, err := call(ctx, c, backends.Idempotent, what, request{method: http.MethodGet, path: at("tags", tag)},
		func(a *tagAnswer) bool {
			return a.Tag != nil && strings.EqualFold(a.Tag.Name, tag) && a.Tag.Resources != nil && a.Tag.Resources.Count != nil
		})
	switch {
	case backends.HasCode(err, backends.NotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return *found.Tag.Resources.Count > 0, nil
}

// tidy deletes a tag that nothing carries.
func (c *Client) tidy(ctx context.Context, tag string) error {
	what := "Removing the tag " + tag
	carried, err := c.isCarried(ctx, what, tag)
	if err != nil || carried {
		return err
	}
	c.shared.set(tag, false)
	return c.deleteTag(ctx, what, tag)
}
