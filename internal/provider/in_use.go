// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"fmt"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// shownObjects is how many objects an error names.
const shownObjects = 10

// inUse is the error of an account or pool that can't be deleted, since objects
// in the cloud carry its id.
func inUse(ref reference.Reference, machines []backends.Machine) *backends.Error {
	e := backends.Errorf(backends.InvalidState, "The %s %q still has %s in the cloud.", ref.Kind, nameOf(ref), count(len(machines), "machine"))
	e.Details = map[string]any{"machines": len(machines)}
	return e.WithRemedy("They are: %s.\n\nDestroy them first. The data source bettercompute_instances lists them with their uris, to import those that no state has. "+
		"They may also belong to another configuration that uses the same account name: those are its to destroy.\n\n%s",
		nameMachines(machines), removedHelp(ref.Kind.Resource()))
}

// renamedInUse is the error of a plan that gives an account or pool another id
// while objects in the cloud carry the old one.
func renamedInUse(ref reference.Reference, machines []backends.Machine, attributes []string) *backends.Error {
	e := backends.Errorf(backends.InvalidState, "The %s %q can't become another one: it has %s in the cloud.",
		ref.Kind, nameOf(ref), count(len(machines), "machine"))
	e.Details = map[string]any{"machines": len(machines)}
	if len(attributes) == 0 {
		// Nothing in the configuration changed: the state was edited.
		return e.WithRemedy("The recorded id isn't the one that follows from the names. Take the state back as it was, or remove this resource from it and import it again.")
	}
	e = e.At(attributes[0])
	return e.WithRemedy("Another %s makes another id, which those machines don't carry: %s.\n\n"+
		"Undo the change, or make a second resource beside this one and move the machines by making them anew there.",
		strings.Join(attributes, ", "), nameMachines(machines))
}

// anotherProject is the error of an account's new configuration that shows none of
// the machines which the old one shows.
func anotherProject(machines []backends.Machine) *backends.Error {
	what := "doesn't show the account's machine"
	if len(machines) > 1 {
		what = "shows none of the account's " + count(len(machines), "machine")
	}
	e := backends.Errorf(backends.InvalidState, "The new configuration %s: %s.", what, nameMachines(machines))
	e.Details = map[string]any{"machines": len(machines)}
	return e.WithRemedy("Is the new token or endpoint that of another project? Then take the change back, or destroy the machines first: " +
		"machines don't move from one project to another. Nothing was recorded.")
}

func nameOf(ref reference.Reference) string {
	if ref.Kind == reference.KindPool {
		return ref.Pool
	}
	return ref.Account
}

func nameMachines(machines []backends.Machine) string {
	var names []string
	for _, m := range machines[:min(len(machines), shownObjects)] {
		names = append(names, fmt.Sprintf("%s (%s)", m.Name, m.ID))
	}
	if more := len(machines) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
