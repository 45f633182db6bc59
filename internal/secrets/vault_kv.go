// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package secrets

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/hashicorp/vault/api"
)

// mount is where a path's secrets engine hangs.
type mount struct {
	path    string // with a slash at the end, may begin with namespaces
	version int    // of KV: 1, 2
}

// kvRead reads the fields of a secret.
//
// Whether the mount is KV v1 or v2, and where it ends, is asked of Vault, as its
// CLI does. When Vault won't tell (403: some policies and proxies close that
// endpoint; 404: Vault older than 0.10), the first segment is taken for the mount
// and v2 is tried before v1.
func kvRead(ctx context.Context, client *api.Client, path string) (map[string]any, error) {
	m, err := findMount(ctx, client, path)
	switch {
	case err == nil && m.version == 2:
		return readV2(ctx, client, path, dataPath(path, m.path))
	case err == nil:
		return readV1(ctx, client, path)
	case !refused(err):
		return nil, vaultFailure(client, path, err)
	}
	first, _, _ := strings.Cut(path, "/")
	fields, errV2 := readV2(ctx, client, path, dataPath(path, first+"/"))
	if errV2 == nil {
		return fields, nil
	}
	if !errors.Is(errV2, errMissing) && !errors.Is(errV2, errDenied) {
		return nil, errV2
	}
	fields, errV1 := readV1(ctx, client, path)
	if errV1 == nil {
		return fields, nil
	}
	// Of the two refusals, the one that isn't about permission says more: the token
	// could read there, and found nothing. Else v2, the more likely kind, speaks.
	if errors.Is(errV2, errDenied) && errors.Is(errV1, errMissing) {
		return nil, errV1
	}
	return nil, errV2
}

// findMount asks for the mount of a path, as `vault kv` does before each command.
func findMount(ctx context.Context, client *api.Client, path string) (mount, error) {
	secret, err := client.Logical().ReadWithContext(ctx, "sys/internal/ui/mounts/"+path)
	if err != nil {
		return mount{}, err
	}
	if secret == nil {
		return mount{}, &api.ResponseError{StatusCode: http.StatusNotFound}
	}
	at, _ := secret.Data["path"].(string)
	kind, _ := secret.Data["type"].(string)
	options, _ := secret.Data["options"].(map[string]any)
	version, _ := options["version"].(string)
	switch {
	case kind != "kv" && kind != "generic": // generic is what KV v1 was called
		return mount{}, failure("vault://%s can't be resolved: the secrets engine there is not a key/value store.", path).
			WithRemedy("Only KV v1 and v2 can be read. Another engine makes a new credential with every read.")
	case version == "2":
		return mount{at, 2}, nil
	}
	return mount{at, 1}, nil
}

// dataPath puts KV v2's data/ after the mount. The mount that Vault reports may
// begin with namespaces that the path doesn't have, since they go in a header.
func dataPath(path, mountPath string) string {
	mountPath = strings.TrimSuffix(mountPath, "/")
	for mountPath != "" {
		if rest, ok := strings.CutPrefix(path, mountPath+"/"); ok {
			return mountPath + "/data/" + rest
		}
		_, mountPath, _ = strings.Cut(mountPath, "/")
	}
	first, rest, _ := strings.Cut(path, "/")
	return first + "/data/" + rest
}

func readV1(ctx context.Context, client *api.Client, path string) (map[string]any, error) {
	secret, err := client.Logical().ReadWithContext(ctx, path)
	if err != nil {
		return nil, vaultFailure(client, path, err)
	}
	if secret == nil || len(secret.Data) == 0 {
		return nil, missing(path)
	}
	return secret.Data, nil
}

func readV2(ctx context.Context, client *api.Client, path, dataPath string) (map[string]any, error) {
	secret, err := client.Logical().ReadWithContext(ctx, dataPath)
	if err != nil {
		return nil, vaultFailure(client, path, err)
	}
	if secret == nil {
		return nil, missing(path)
	}
	metadata, isV2 := secret.Data["metadata"].(map[string]any)
	if !isV2 {
		return nil, missing(path) // a v1 secret that happens to be called data/…
	}
	if fields, ok := secret.Data["data"].(map[string]any); ok {
		return fields, nil
	}
	how, remedy := "deleted", "Bring it back with `vault kv undelete -versions=%s "+path+"`, or write a new one."
	if destroyed, _ := metadata["destroyed"].(bool); destroyed {
		how, remedy = "destroyed", "Version %s can't be brought back. Write a new one with `vault kv put "+path+" …`."
	}
	return nil, failure("vault://%s can't be resolved: the secret's latest version is %s.", path, how).
		WithRemedy(remedy, versionText(metadata))
}

func versionText(metadata map[string]any) string {
	if n, ok := metadata["version"].(interface{ String() string }); ok {
		return n.String()
	}
	return "N"
}
