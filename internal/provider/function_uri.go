// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// uriFunction is a provider function that puts a name into the uri of what it is in:
// for import blocks, since a uri has its query at its end, where a name can't be added
// to it. It asks no cloud and resolves no secret.
type uriFunction struct {
	clouds *backends.Registry

	name   string
	parent reference.Kind
	kind   reference.Kind // of the result
	// problem is what is wrong with a name; "" for nothing.
	problem func(name string) string
	// child is the result's reference.
	child func(parent reference.Reference, name string) reference.Reference
	// summary and about are what the documentation says.
	summary, about string
	// machine: there is a third parameter, the machine's id.
	machine bool
}

// uriFunctions are the functions of the provider.
func uriFunctions(clouds *backends.Registry) []func() function.Function {
	all := []*uriFunction{
		{
			name: "pool_uri", parent: reference.KindAccount, kind: reference.KindPool, problem: reference.PoolNameProblem,
			child: func(account reference.Reference, name string) reference.Reference {
				return account.NewPool(name, false, reference.Limits{})
			},
			summary: "The uri of a pool in an account.",
			about:   "The `uri` of the pool of that name in an account, as an import block or a data source takes it. A pool with `adopt` or `limits` has them in its uri too: take that from the resource.",
		},
		{
			name: "instance_uri", parent: reference.KindPool, kind: reference.KindInstance, problem: reference.InstanceNameProblem, machine: true,
			child:   func(pool reference.Reference, name string) reference.Reference { return pool.InstanceRef(name, "") },
			summary: "The uri of an instance in a pool.",
			about: "The `uri` of the instance of that name in a pool, as an import block and a volume's `instances` take it. " +
				"`machine_id` is the machine's id in the cloud. It may be `null` for a machine that this provider made; a machine that was made by hand or by another tool must be named by its id.",
		},
		{
			name: "volume_uri", parent: reference.KindPool, kind: reference.KindVolume, problem: reference.VolumeNameProblem,
			child:   reference.Reference.VolumeRef,
			summary: "The uri of a volume in a pool.",
			about:   "The `uri` of the volume of that name in a pool, as an import block takes it.",
		},
		{
			name: "snapshot_uri", parent: reference.KindVolume, kind: reference.KindSnapshot, problem: reference.SnapshotNameProblem,
			child:   reference.Reference.SnapshotRef,
			summary: "The uri of a snapshot of a volume.",
			about:   "The `uri` of the snapshot of that name of a volume, as an import block and a volume's `from_snapshot` take it.",
		},
	}
	out := make([]func() function.Function, len(all))
	for i, f := range all {
		f.clouds = clouds
		out[i] = func() function.Function { return f }
	}
	return out
}

// Metadata implements [function.Function].
func (f *uriFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = f.name
}

// Definition implements [function.Function].
func (f *uriFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	parent := string(f.parent)
	resp.Definition = function.Definition{
		Summary: f.summary, MarkdownDescription: f.about,
		Parameters: []function.Parameter{
			function.StringParameter{
				Name: parent + "_uri", MarkdownDescription: fmt.Sprintf("The %s's `uri`, as in `%s.NAME.uri`.", parent, f.parent.Resource()),
			},
			function.StringParameter{Name: "name", MarkdownDescription: fmt.Sprintf("The %s's name.", f.kind)},
		},
		Return: function.StringReturn{},
	}
	if f.machine {
		resp.Definition.Parameters = append(resp.Definition.Parameters, function.StringParameter{
			Name: "machine_id", AllowNullValue: true, MarkdownDescription: "The machine's id in the cloud, or `null`.",
		})
	}
}

// Run implements [function.Function].
func (f *uriFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var parent, name string
	var machine types.String
	targets := []any{&parent, &name}
	if f.machine {
		targets = append(targets, &machine)
	}
	if resp.Error = req.Arguments.Get(ctx, targets...); resp.Error != nil {
		return
	}
	uri, at, err := f.uri(parent, name, machine)
	if err != nil {
		d := describe(err)
		resp.Error = function.NewArgumentFuncError(int64(at), d.summary()+"\n\n"+d.detail())
		return
	}
	resp.Error = resp.Result.Set(ctx, uri)
}

// uri is the result, or what is wrong with which argument.
func (f *uriFunction) uri(parent, name string, machine types.String) (uri string, at int, err error) {
	ref, err := reference.ParseKind(f.clouds, f.parent, parent)
	if err != nil {
		return "", 0, err
	}
	if problem := f.problem(name); problem != "" {
		return "", 1, backends.Errorf(backends.InvalidInput, "%s", problem).
			WithRemedy("Give the %s's name, as its attribute name has it.", f.kind)
	}
	child := f.child(ref, name)
	if machine.ValueString() != "" {
		if problem := reference.MachineIDProblem(machine.ValueString()); problem != "" {
			return "", 2, backends.Errorf(backends.InvalidInput, "%s", problem).
				WithRemedy("Give the machine's id in the cloud, as the attribute machine_id has it, or null.")
		}
		child = child.InstanceRef(name, machine.ValueString())
	}
	return child.String(), 0, nil
}
