// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// shownObjects is how many objects an error names.
const shownObjects = 10

// objectKinds list the objects of each kind that an account can have, those being
// deleted left out. A cloud without a kind has none of it, at no call.
var objectKinds = []func(ctx context.Context, account *reconcile.Account, filter backends.Filter) ([]backends.About, error){
	func(ctx context.Context, account *reconcile.Account, filter backends.Filter) ([]backends.About, error) {
		machines, err := account.Objects(ctx, filter)
		return aboutAll(machines), err
	},
	func(ctx context.Context, account *reconcile.Account, filter backends.Filter) ([]backends.About, error) {
		volumes, err := account.VolumeObjects(ctx, filter)
		return aboutAll(volumes), err
	},
	func(ctx context.Context, account *reconcile.Account, filter backends.Filter) ([]backends.About, error) {
		snapshots, err := account.SnapshotObjects(ctx, filter)
		return aboutAll(snapshots), err
	},
}

// objectsIn are the objects of all kinds that a filter holds.
func objectsIn(ctx context.Context, account *reconcile.Account, filter backends.Filter) ([]backends.About, error) {
	var out []backends.About
	for _, list := range objectKinds {
		objects, err := list(ctx, account, filter)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}

func aboutAll[T backends.Object](objects []T) []backends.About {
	out := make([]backends.About, 0, len(objects))
	for _, o := range objects {
		if a := o.About(); !a.Going() {
			out = append(out, a)
		}
	}
	return out
}

// inUse is the error of an account or pool that can't be deleted, since objects
// in the cloud carry its id.
func inUse(ref reference.Reference, objects []backends.About) *backends.Error {
	e := backends.Errorf(backends.InvalidState, "The %s %q still has %s in the cloud.", ref.Kind, nameOf(ref), countObjects(objects))
	e.Details = objectCounts(objects)
	return e.WithRemedy("They are: %s.\n\nDestroy them first. The data sources bettercompute_instances, bettercompute_provider_volumes and bettercompute_snapshots "+
		"list them with their uris, to import those that no state has. "+
		"They may also belong to another configuration that uses the same account name: those are its to destroy.\n\n%s",
		nameObjects(objects), removedHelp(ref.Kind.Resource()))
}

// renamedInUse is the error of a plan that gives an account or pool another id
// while objects in the cloud carry the old one.
func renamedInUse(ref reference.Reference, objects []backends.About, attributes []string) *backends.Error {
	e := backends.Errorf(backends.InvalidState, "The %s %q can't become another one: it has %s in the cloud.",
		ref.Kind, nameOf(ref), countObjects(objects))
	e.Details = objectCounts(objects)
	if len(attributes) == 0 {
		// Nothing in the configuration changed: the state was edited.
		return e.WithRemedy("The recorded id isn't the one that follows from the names. Take the state back as it was, or remove this resource from it and import it again.")
	}
	e = e.At(attributes[0])
	return e.WithRemedy("Another %s makes another id, which those objects don't carry: %s.\n\n"+
		"Undo the change, or make a second resource beside this one and move the objects by making them anew there.",
		strings.Join(attributes, ", "), nameObjects(objects))
}

// anotherProject is the error of an account's new configuration that shows none of
// the objects of one kind which the old one shows.
func anotherProject(objects []backends.About) *backends.Error {
	what := "doesn't show the account's " + objects[0].Noun
	if len(objects) > 1 {
		what = "shows none of the account's " + countObjects(objects)
	}
	e := backends.Errorf(backends.InvalidState, "The new configuration %s: %s.", what, nameObjects(objects))
	e.Details = objectCounts(objects)
	return e.WithRemedy("Is the new token or endpoint that of another project? Then take the change back, or destroy the objects first: " +
		"they don't move from one project to another. Nothing was recorded.")
}

func nameOf(ref reference.Reference) string {
	if ref.Kind == reference.KindPool {
		return ref.Pool
	}
	return ref.Account
}

// nameObjects names up to ten objects; what isn't a machine says what it is.
func nameObjects(objects []backends.About) string {
	var names []string
	for _, o := range objects[:min(len(objects), shownObjects)] {
		name := fmt.Sprintf("%s (%s)", o.Name, o.ID)
		if o.Noun != nounOf(reference.KindInstance) {
			name = o.Noun + " " + name
		}
		names = append(names, name)
	}
	if more := len(objects) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// nounsOf are the nouns of objects and how many there are of each, in their order.
func nounsOf(objects []backends.About) (nouns []string, counts map[string]int) {
	counts = map[string]int{}
	for _, o := range objects {
		if !slices.Contains(nouns, o.Noun) {
			nouns = append(nouns, o.Noun)
		}
		counts[o.Noun]++
	}
	return nouns, counts
}

// countObjects counts objects by what they are: "2 machines, 1 volume and 3 snapshots".
func countObjects(objects []backends.About) string {
	nouns, counts := nounsOf(objects)
	var parts []string
	for _, noun := range nouns {
		parts = append(parts, count(counts[noun], noun))
	}
	if last := len(parts) - 1; last > 0 {
		return strings.Join(parts[:last], ", ") + " and " + parts[last]
	}
	return strings.Join(parts, "")
}

// objectCounts are an error's details: how many machines, volumes and snapshots.
func objectCounts(objects []backends.About) map[string]any {
	_, counts := nounsOf(objects)
	out := map[string]any{}
	for noun, n := range counts {
		out[noun+"s"] = n
	}
	return out
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
