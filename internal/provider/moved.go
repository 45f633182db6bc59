// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// A `moved` block hands a resource of ours the state of another provider's, and nothing
// else: neither the configuration nor an account. So what is moved is a state without a
// uri. Nothing can be read or changed by it; the plan, which knows the pool, shows the
// object being taken over in place, as after an import, and the apply does it.

// moved tells whether a state was moved here and not taken over since.
func moved(state record) bool { return state.isNull("uri") && state.isNull("claim") }

// movedKey names the private state that says where a state was moved from.
const movedKey = "moved"

type movedFrom struct {
	Resource string `json:"resource"` // the other provider's type
	Cloud    string `json:"cloud"`    // the definition's id
}

func readMovedFrom(ctx context.Context, private privateGetter) movedFrom {
	raw, _ := private.GetKey(ctx, movedKey)
	var from movedFrom
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, &from) // what another version left is as none
	}
	return from
}

// movers are the framework's state movers for the moves that pick selects of each
// cloud. fill writes what was read into an empty record. What none of them knows is
// refused by the last one, which says what can be moved.
func movers[T any](registry *backends.Registry, target reference.Kind, pick func(backends.Moves) []backends.Move[T],
	fill func(record, T) error) []resource.StateMover {
	var out []resource.StateMover
	var known []string
	for _, d := range registry.All() {
		for _, move := range pick(d.Moves) {
			known = append(known, move.Resource)
			mover := func(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
				if req.SourceTypeName == move.Resource && providerName(req.SourceProviderAddress) == move.Provider {
					report(&resp.Diagnostics, moveState(ctx, d, move, fill, req, resp))
				}
			}
			out = append(out, resource.StateMover{StateMover: mover})
		}
	}
	refuse := func(_ context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
		report(&resp.Diagnostics, cantMove(req, target, known))
	}
	return append(out, resource.StateMover{StateMover: refuse})
}

// providerName is the last part of a provider's address: registry.terraform.io/hetznercloud/hcloud
// is hcloud, from whichever registry or mirror it comes.
func providerName(address string) string { return address[strings.LastIndex(address, "/")+1:] }

func moveState[T any](ctx context.Context, d *backends.Definition, move backends.Move[T], fill func(record, T) error,
	req resource.MoveStateRequest, resp *resource.MoveStateResponse) error {
	source, err := backends.ReadVendorState(req.SourceRawState.JSON)
	if err != nil {
		return err
	}
	object, err := move.Read(source)
	if err != nil {
		return err
	}
	rec, err := newRecord(resp.TargetState.Raw)
	if err != nil {
		return err
	}
	if err := fill(rec, object); err != nil {
		return err
	}
	from, err := json.Marshal(movedFrom{Resource: move.Resource, Cloud: d.ID})
	if err != nil {
		return err
	}
	resp.TargetState.Raw = rec.raw()
	noIdentity(ctx, resp.TargetIdentity)
	resp.Diagnostics.Append(resp.TargetPrivate.SetKey(ctx, movedKey, from)...)
	return nil
}

// noIdentity records that there is no uri yet: the framework wants an identity of every
// state.
func noIdentity(ctx context.Context, identity *tfsdk.ResourceIdentity) {
	if identity != nil {
		_ = identity.SetAttribute(ctx, path.Root("uri"), "") // the schema says it is a string
	}
}

func cantMove(req resource.MoveStateRequest, target reference.Kind, known []string) *backends.Error {
	to := target.Resource()
	e := backends.Errorf(backends.Unsupported, "A %s of the provider %s can't be moved to a %s.", req.SourceTypeName, providerName(req.SourceProviderAddress), to)
	forget := fmt.Sprintf("Else forget it and import the object: removed { from = %s.NAME, lifecycle { destroy = false } } and import { to = %s.NAME, id = \"…\" }.",
		req.SourceTypeName, to)
	slices.Sort(known)
	if known = slices.Compact(known); len(known) == 0 {
		return e.WithRemedy("%s", forget)
	}
	return e.WithRemedy("It can be moved from: %s. %s", strings.Join(known, ", "), forget)
}

// notTakenOver is the refusal to destroy what was moved here only.
func notTakenOver(state record, kind reference.Kind) *backends.Error {
	e := backends.Errorf(backends.InvalidState, "The %s %q was moved here from another provider and is not taken over yet, so it can't be destroyed.",
		kind.Resource(), state.text("name"))
	return e.WithRemedy("Apply once with its block, which takes it over; destroy it then. To leave the object as it is, and only forget it, write: removed { from = %s.NAME, lifecycle { destroy = false } }.",
		kind.Resource())
}

// movedElsewhere is the refusal to take over what is in another cloud than the one that
// the configuration names; nil where it fits, or where nothing is known of it.
func movedElsewhere(from movedFrom, registry *backends.Registry, account *reconcile.Account) *backends.Error {
	if from.Cloud == "" || from.Cloud == account.Definition.ID {
		return nil
	}
	was := from.Cloud
	if d, ok := registry.Lookup(from.Cloud); ok {
		was = d.Title
	}
	return backends.Errorf(backends.InvalidInput, "It was a %s, which is on %s, and is moved to an account of %s.", from.Resource, was, account.Definition.Title).
		WithRemedy("Name a pool of an account of %s.", was)
}

// checkMoved is the refusal to take over an object that isn't the one that the
// configuration names, by its marks: nil when nobody manages it, or when it carries
// the key already, as after an apply whose end wasn't recorded.
func checkMoved(object backends.Object, key, pool string) error {
	a := object.About()
	switch {
	case !a.Marks.Managed:
		return nil
	case a.Marks.Pool != pool && (!a.Marks.Fixed || !strings.HasPrefix(pool, a.Marks.Pool)):
		return backends.Errorf(backends.Conflict, "The %s %q (%s) belongs to another pool of this provider (%s).", a.Noun, a.Name, a.ID, a.Marks.Pool).
			WithRemedy("Name that pool, or forget this record: removed with destroy = false. This configuration's pool is %s.", pool)
	case a.Marks.Key != key:
		return backends.Errorf(backends.Conflict, "The %s %q (%s) is this pool's resource of another name.", a.Noun, a.Name, a.ID).
			WithRemedy("Give this block the name that the %s was made with.", a.Noun)
	}
	return nil
}

// goneSinceMoved says what to do about an object that was moved here and isn't in the
// account; other errors are as they are.
func goneSinceMoved(err error, noun, name, id string, pool reference.Reference) error {
	if !backends.HasCode(err, backends.NotFound) {
		return err
	}
	return backends.Errorf(backends.NotFound, "The %s %q (%s), which was moved here, isn't in the pool's account (%s).", noun, name, id, accountName(pool)).
		WithRemedy("If it is in another account, name a pool of that one. If it was deleted, forget the record: removed with destroy = false, or the CLI's command state rm.")
}

// unknownIfNull makes those attributes of a record unknown that are null: what another
// provider's state didn't tell, and the apply will.
func unknownIfNull(r record, names ...string) {
	for _, name := range names {
		if r.isNull(name) {
			r.setUnknown(name)
		}
	}
}
