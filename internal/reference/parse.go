// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reference

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/secrets"
)

// longest bounds a uri in bytes. The longest field is a certificate.
const longest = 64 << 10

const badEncoding = "A percent sign is followed by two hexadecimal digits, what they mean is UTF-8, and a percent sign itself is %25."

var (
	schemeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]{0,39}$`)
	keyForm    = regexp.MustCompile(`^[a-z0-9_.]{1,40}$`)
)

// Parse reads a uri of any kind in its one spelling (see the package). Whatever is
// wrong is INVALID_INPUT; the message names the part at fault, the remedy shows
// the right spelling where the meaning is clear. A value that may be a credential
// is never repeated.
func Parse(registry *backends.Registry, uri string) (Reference, error) {
	if kind, ok := kindOfID(uri); ok {
		return Reference{}, invalid("This is the id of %s, not a uri.", withArticle(kind)).
			WithRemedy("Use the attribute uri: %s.<name>.uri.", kind.Resource())
	}
	r, err := parse(registry, uri)
	if err != nil {
		return Reference{}, err
	}
	if canonical := r.String(); canonical != uri {
		return Reference{}, invalid("The uri is not in its one spelling: %s.", difference(uri, r)).
			WithRemedy("Write: %s", canonical)
	}
	return r, nil
}

// ParseKind is [Parse] for a place where one kind belongs.
func ParseKind(registry *backends.Registry, kind Kind, uri string) (Reference, error) {
	return ParseKinds(registry, uri, kind)
}

// ParseKinds is [Parse] for a place where one of several kinds belongs, the usual
// one first.
func ParseKinds(registry *backends.Registry, uri string, kinds ...Kind) (Reference, error) {
	wanted, forms := make([]string, len(kinds)), make([]string, len(kinds))
	if kind, ok := kindOfID(uri); ok && len(kinds) > 0 {
		e := invalid("This is the id of %s, not a uri.", withArticle(kind))
		return Reference{}, e.WithRemedy("Use the attribute uri: %s.<name>.uri.", kinds[0].Resource())
	}
	r, err := Parse(registry, uri)
	if err != nil || slices.Contains(kinds, r.Kind) {
		return r, err
	}
	for i, k := range kinds {
		wanted[i] = "the uri of " + withArticle(k)
		forms[i] = fmt.Sprintf("%s.<name>.uri, which looks like %s?…", k.Resource(), k.form(r.Cloud))
	}
	return Reference{}, invalid("This is the uri of %s; %s is wanted.", withArticle(r.Kind), strings.Join(wanted, " or ")).
		WithRemedy("Use %s.", strings.Join(forms, " or "))
}

// parse reads any spelling whose meaning is clear.
func parse(registry *backends.Registry, uri string) (Reference, error) {
	known := strings.Join(registry.IDs(), ", ")
	example := "hetzner-cloud"
	if ids := registry.IDs(); len(ids) > 0 {
		example = ids[0]
	}
	scheme, rest, ok := strings.Cut(uri, "://")
	switch {
	case len(uri) > longest:
		return Reference{}, invalid("The uri is longer than %d bytes.", longest)
	case uri == "":
		return Reference{}, invalid("The uri is empty.").WithRemedy("A uri begins like %s.", KindAccount.form(example))
	case !ok:
		return Reference{}, invalid("This is not a uri: it has no scheme.").
			WithRemedy("Use the attribute uri of a resource. A uri begins like %s; the known schemes are: %s.", KindAccount.form(example), known)
	}
	d, ok := registry.Lookup(scheme)
	if !ok {
		return Reference{}, unknownScheme(scheme, registry.IDs())
	}
	if strings.Contains(rest, "#") {
		return Reference{}, invalid("The uri has a fragment (#), which no uri of ours has.").
			WithRemedy("Write a # inside a value, such as a vault:// reference's, as %%23.")
	}
	path, query, _ := strings.Cut(rest, "?")
	r := Reference{Cloud: d.ID, definition: d}
	if err := r.parsePath(path); err != nil {
		return Reference{}, err
	}
	if err := r.parseQuery(query); err != nil {
		return Reference{}, err
	}
	return r, nil
}

// parsePath reads the tenant and the names.
func (r *Reference) parsePath(path string) error {
	raw := strings.Split(path, "/")
	switch authority := raw[0]; {
	case strings.Contains(authority, "@"):
		return invalid("The uri has a user name or password before an @, which no uri of ours has.").
			WithRemedy("A uri begins like %s. Credentials are secret references in the query: token=env://NAME.", KindAccount.form(r.Cloud))
	case strings.Contains(authority, ":"):
		return invalid("The uri has a port, or a colon in the tenant.").
			WithRemedy("Leave the port out: the uri begins with the tenant. Write a tenant's colon as %%3A.")
	}
	s := make([]string, len(raw))
	for i, segment := range raw {
		text, ok := decode(segment)
		if !ok {
			return badPart(partName(i, s), badEncoding)
		}
		if text == "" {
			return badPart(partName(i, s), "It is empty.")
		}
		s[i] = text
	}
	r.Tenant = s[0]
	if problem := TenantProblem(r.Tenant); problem != "" {
		return badPart("tenant", problem)
	}
	if len(s) == 1 {
		return r.incomplete("account", KindAccount)
	}
	r.Kind, r.Account = KindAccount, s[1]
	if problem := AccountNameProblem(r.Account); problem != "" {
		return badName("account name", r.Account, problem)
	}
	if len(s) == 2 {
		return nil
	}
	r.Kind, r.Pool = KindPool, s[2]
	if problem := PoolNameProblem(r.Pool); problem != "" {
		return badName("pool name", r.Pool, problem)
	}
	if len(s) == 3 {
		return nil
	}
	switch s[3] {
	case "instances":
		return r.parseInstance(s[4:])
	case "volumes":
		return r.parseVolume(s[4:])
	}
	return badName("part after the pool", s[3], "After a pool come instances/… or volumes/….")
}

func (r *Reference) parseInstance(s []string) error {
	switch len(s) {
	case 0:
		return r.incomplete("instance", KindInstance)
	case 1:
	case 2:
		r.MachineID = s[1]
		if problem := MachineIDProblem(r.MachineID); problem != "" {
			return badPart("machine id", problem)
		}
	default:
		return badName("part after the machine id", s[2], "Nothing comes after the machine id; write a slash in it as %2F.")
	}
	r.Kind, r.Instance = KindInstance, s[0]
	if problem := InstanceNameProblem(r.Instance); problem != "" {
		return badName("instance name", r.Instance, problem)
	}
	return nil
}

func (r *Reference) parseVolume(s []string) error {
	if len(s) == 0 {
		return r.incomplete("volume", KindVolume)
	}
	r.Kind, r.Volume = KindVolume, s[0]
	if problem := VolumeNameProblem(r.Volume); problem != "" {
		return badName("volume name", r.Volume, problem)
	}
	switch {
	case len(s) == 1:
		return nil
	case s[1] != "snapshots":
		return badName("part after the volume", s[1], "After a volume comes nothing or snapshots/….")
	case len(s) == 2:
		return r.incomplete("snapshot", KindSnapshot)
	case len(s) > 3:
		return badName("part after the snapshot", s[3], "Nothing comes after the snapshot.")
	}
	r.Kind, r.Snapshot = KindSnapshot, s[2]
	if problem := SnapshotNameProblem(r.Snapshot); problem != "" {
		return badName("snapshot name", r.Snapshot, problem)
	}
	return nil
}

// parseQuery reads the account's configuration and the pool's keys.
func (r *Reference) parseQuery(query string) error {
	config := backends.Values{}
	seen := map[string]bool{}
	for entry := range strings.SplitSeq(query, "&") {
		if query == "" {
			break
		}
		key, value, ok := strings.Cut(entry, "=")
		if !ok {
			return badPart("query", "An entry is a key, an equals sign and a value; entries are joined by &.")
		}
		if seen[key] {
			return badPart(keyName(key), "It stands there twice.")
		}
		seen[key] = true
		if err := r.parseEntry(config, key, value); err != nil {
			return err
		}
	}
	if issues := checkConfig(r.definition, config, nil); len(issues) > 0 {
		return configError(issues)
	}
	r.Config = prune(r.definition.Manifest.Account, config)
	return nil
}

func (r *Reference) parseEntry(config backends.Values, key, value string) error {
	if strings.HasPrefix(key, "pool.") {
		if r.Kind != KindPool {
			return badPart(keyName(key), "A pool's keys stand in the uri of the pool only, not of what is above or below it.")
		}
		if err := r.setPoolKey(key, value); err != nil {
			return err
		}
		return nil
	}
	if err := setField(r.definition.Manifest.Account, config, key, value); err != nil {
		return err
	}
	return nil
}

// configError is one error for all that is wrong with a uri's configuration.
func configError(issues []*backends.Error) error {
	messages, remedies := make([]string, len(issues)), []string{}
	for i, e := range issues {
		messages[i] = e.Message
		if len(e.Path) > 0 {
			messages[i] = e.Path.String() + ": " + e.Message
		}
		if e.Remedy != "" && !slices.Contains(remedies, e.Remedy) {
			remedies = append(remedies, e.Remedy)
		}
	}
	out := invalid("The query of the uri is wrong. %s", strings.Join(messages, " "))
	out.Remedy = strings.Join(remedies, " ")
	if out.Remedy == "" {
		out.Remedy = "Use the uri that the resource exports, or correct the query by the documentation of the account."
	}
	out.Reason = issues[0].Reason
	return out
}

func unknownScheme(scheme string, known []string) *backends.Error {
	list := strings.Join(known, ", ")
	var e *backends.Error
	switch {
	case slices.Contains([]string{string(secrets.SchemeEnv), string(secrets.SchemeSecret), string(secrets.SchemeVault)}, scheme):
		e = invalid("This is a secret reference, not the uri of an object.").
			WithRemedy("Use the attribute uri of a resource. The known schemes are: %s.", list)
	case schemeForm.MatchString(scheme):
		e = invalid("The uri's scheme %q is no cloud that is known.", scheme).WithRemedy("The known schemes are: %s.", list)
	default:
		e = invalid("The uri's scheme is malformed.").WithRemedy("The known schemes are: %s.", list)
	}
	e.Details = map[string]any{"known": known}
	return e
}

func (r *Reference) incomplete(what string, kind Kind) error {
	return invalid("The uri names no %s.", what).WithRemedy("It looks like %s?…", kind.form(r.Cloud))
}

func invalid(format string, args ...any) *backends.Error {
	return backends.Errorf(backends.InvalidInput, format, args...).
		WithRemedy("Use the uri that the resource exports.")
}

// badPart names the part at fault without repeating it.
func badPart(part, problem string) *backends.Error {
	return invalid("The uri's %s is wrong. %s", part, problem)
}

// badName repeats the part too, when it can't be a credential.
func badName(part, text, problem string) *backends.Error {
	return invalid("The uri's %s is wrong: %s. %s", part, quote(text), problem)
}

func unknownKey(key string, known []string) *backends.Error {
	return invalid("The uri's query has an unknown key: %s.", keyName(key)).WithRemedy("The known keys are: %s.", strings.Join(known, ", "))
}

// keyName repeats a key that looks like one.
func keyName(key string) string {
	if keyForm.MatchString(key) {
		return "key " + key
	}
	return "a key that is not a field's name"
}

// partName is what a segment of the path is, by those before it.
func partName(i int, before []string) string {
	switch {
	case i < 3:
		return []string{"tenant", "account name", "pool name"}[i]
	case i == 3:
		return "part after the pool"
	case before[3] == "instances" && i < 6:
		return []string{"instance name", "machine id"}[i-4]
	case before[3] == "volumes" && i < 7:
		return []string{"volume name", "part after the volume", "snapshot name"}[i-4]
	}
	return fmt.Sprintf("part %d", i+1)
}

func withArticle(k Kind) string {
	if k == KindAccount || k == KindInstance {
		return "an " + string(k)
	}
	return "a " + string(k)
}
