// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reference

import (
	"slices"
	"strconv"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Kind is what a reference names.
type Kind string

// The kinds.
const (
	KindAccount  Kind = "account"
	KindPool     Kind = "pool"
	KindInstance Kind = "instance"
	KindVolume   Kind = "volume"
	KindSnapshot Kind = "snapshot"
)

// Resource is the type of the Terraform resource that makes such objects.
func (k Kind) Resource() string {
	switch k {
	case KindAccount:
		return "bettercompute_provider_account"
	case KindVolume:
		return "bettercompute_provider_volume"
	default:
		return "bettercompute_" + string(k)
	}
}

// form is how a uri of the kind begins.
func (k Kind) form(cloud string) string {
	account := cloud + "://tenant/account"
	switch k {
	case KindAccount:
		return account
	case KindPool:
		return account + "/pool"
	case KindInstance:
		return account + "/pool/instances/name/machine-id"
	case KindVolume:
		return account + "/pool/volumes/name"
	default:
		return account + "/pool/volumes/name/snapshots/name"
	}
}

// Reference names an account or an object below one. [NewAccount] and [Parse]
// make the first, the methods PoolRef, InstanceRef and so on derive others from
// it. The zero value names nothing. Treat Config as read-only: references share it.
type Reference struct {
	Kind    Kind
	Cloud   string // the definition's id
	Tenant  string
	Account string
	// Config holds the account's values that differ from their defaults. It may
	// hold [backends.Unknown] in a plan; see [Reference.Known].
	Config backends.Values

	Pool   string
	Adopt  bool   // of a pool's own reference only
	Limits Limits // of a pool's own reference only

	Instance  string
	MachineID string // the cloud's id; "" when it isn't known, as in an import
	Volume    string
	Snapshot  string

	definition *backends.Definition
}

// NewAccount is the reference of an account with that configuration, nulls left
// out. It returns everything that is wrong, each with its path in the account's
// resource (name, tenant_id, hetzner_cloud.token, …); unknown values pass.
func NewAccount(d *backends.Definition, tenant, name string, config backends.Values) (Reference, []*backends.Error) {
	var issues []*backends.Error
	if problem := TenantProblem(tenant); problem != "" {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", problem).At("tenant_id"))
	}
	if problem := AccountNameProblem(name); problem != "" {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", problem).At("name"))
	}
	issues = append(issues, checkConfig(d, config, backends.Path{d.Attribute()})...)
	if len(issues) > 0 {
		return Reference{}, issues
	}
	return Reference{
		Kind: KindAccount, Cloud: d.ID, Tenant: tenant, Account: name,
		Config: prune(d.Manifest.Account, config), definition: d,
	}, nil
}

// AccountRef is the reference of the account.
func (r Reference) AccountRef() Reference {
	return Reference{Kind: KindAccount, Cloud: r.Cloud, Tenant: r.Tenant, Account: r.Account, Config: r.Config, definition: r.definition}
}

// PoolRef is the reference of the pool without its pool.* keys, as it stands in
// the uris of what is in it. Of an account it is a pool without a name.
func (r Reference) PoolRef() Reference {
	p := r.AccountRef()
	p.Kind, p.Pool = KindPool, r.Pool
	return p
}

// NewPool is the reference of a pool of the account, its pool.* keys included. It
// doesn't check the name: see [PoolNameProblem].
func (r Reference) NewPool(name string, adopt bool, limits Limits) Reference {
	p := r.AccountRef()
	p.Kind, p.Pool, p.Adopt, p.Limits = KindPool, name, adopt, limits
	return p
}

// InstanceRef is the reference of an instance of the pool. machineID may be "". It
// doesn't check the names: see [InstanceNameProblem].
func (r Reference) InstanceRef(name, machineID string) Reference {
	i := r.PoolRef()
	i.Kind, i.Instance, i.MachineID = KindInstance, name, machineID
	return i
}

// VolumeRef is the reference of a volume of the pool. It doesn't check the name:
// see [VolumeNameProblem].
func (r Reference) VolumeRef(name string) Reference {
	v := r.PoolRef()
	v.Kind, v.Volume = KindVolume, name
	return v
}

// SnapshotRef is the reference of a snapshot of the volume. It doesn't check the
// name: see [SnapshotNameProblem].
func (r Reference) SnapshotRef(name string) Reference {
	s := r.VolumeRef(r.Volume)
	s.Kind, s.Snapshot = KindSnapshot, name
	return s
}

// Definition is the cloud.
func (r Reference) Definition() *backends.Definition { return r.definition }

// FullConfig is the account's configuration with defaults filled in; a copy.
func (r Reference) FullConfig() backends.Values {
	if r.definition == nil {
		return backends.WithDefaults(nil, r.Config)
	}
	return backends.WithDefaults(r.definition.Manifest.Account, r.Config)
}

// Known tells whether the whole configuration is known. A plan may not know a part
// of it yet; then there is no uri.
func (r Reference) Known() bool { return r.Config.AllKnown() }

// AccountID is the id of the account.
func (r Reference) AccountID() string { return AccountID(r.Tenant, r.Cloud, r.Account) }

// PoolID is the id of the pool.
func (r Reference) PoolID() string { return PoolID(r.AccountID(), r.Pool) }

// ID is the Better Compute id of what the reference names. It doesn't depend on
// the configuration, the pool's keys or the machine id.
func (r Reference) ID() string {
	switch r.Kind {
	case KindAccount:
		return r.AccountID()
	case KindPool:
		return r.PoolID()
	case KindInstance:
		return InstanceID(r.PoolID(), r.Instance)
	case KindVolume:
		return VolumeID(r.PoolID(), r.Volume)
	case KindSnapshot:
		return SnapshotID(VolumeID(r.PoolID(), r.Volume), r.Snapshot)
	}
	return ""
}

// AccountKey is the canonical uri of the account: clients and caches are kept by
// it, so that a changed configuration gets new ones. "" unless [Reference.Known].
func (r Reference) AccountKey() string { return r.AccountRef().String() }

// String is the canonical uri; "" of the zero value and unless [Reference.Known].
func (r Reference) String() string {
	if r.Kind == "" || !r.Known() {
		return ""
	}
	var b strings.Builder
	b.WriteString(r.Cloud + "://" + strings.ReplaceAll(encode(r.Tenant, false), ":", "%3A"))
	for _, segment := range r.segments() {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(encode(segment, false), "/", "%2F"))
	}
	pairs := r.pairs()
	for i, p := range pairs {
		b.WriteByte("?&"[min(i, 1)])
		b.WriteString(p.key + "=" + p.value)
	}
	return b.String()
}

// segments are the parts of the path after the tenant.
func (r Reference) segments() []string {
	out := []string{r.Account}
	if r.Kind != KindAccount {
		out = append(out, r.Pool)
	}
	switch r.Kind {
	case KindInstance:
		out = append(out, "instances", r.Instance)
		if r.MachineID != "" {
			out = append(out, r.MachineID)
		}
	case KindVolume:
		out = append(out, "volumes", r.Volume)
	case KindSnapshot:
		out = append(out, "volumes", r.Volume, "snapshots", r.Snapshot)
	}
	return out
}

// pair is one entry of a query, its value encoded.
type pair struct{ key, value string }

// pairs are the query, sorted by key.
func (r Reference) pairs() []pair {
	out := flatten(r.Config, "")
	if r.Kind == KindPool {
		if r.Adopt {
			out = append(out, pair{keyAdopt, "true"})
		}
		if r.Limits.Instances != nil {
			out = append(out, pair{keyInstances, strconv.FormatInt(*r.Limits.Instances, 10)})
		}
		if r.Limits.DiskGiB != nil {
			out = append(out, pair{keyDiskGiB, strconv.FormatInt(*r.Limits.DiskGiB, 10)})
		}
		if r.Limits.PricePerHour != "" {
			out = append(out, pair{keyPrice, r.Limits.PricePerHour})
		}
	}
	slices.SortFunc(out, func(a, b pair) int { return strings.Compare(a.key, b.key) })
	return out
}
