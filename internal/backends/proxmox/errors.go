// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The statuses of pveproxy when it can't reach the node that a path names: 595 while
// connecting, 596 while talking, 599 when either was aborted.
const (
	statusConnect = 595
	statusRequest = 596
	statusAborted = 599
)

// What refusals and exit statuses say: the API has few statuses, so that only the
// text tells them apart. They are compared without regard to case; the texts are
// those of the source of qemu-server, pve-guest-common and pve-cluster.
var (
	// textsLocked: a lock that could not be had in time, or a task that holds the VM.
	// Nothing was done.
	textsLocked = regexp.MustCompile(`(?i)can't lock file|unable to acquire .*lock|vm is locked|got no worker upid|got lock request timeout`)
	// textsTaken: the VMID is another's.
	textsTaken = regexp.MustCompile(`(?i)config file already exists|: file exists|vm \d+ already exists`)
	// textsMissing: the VM isn't on the node that was asked.
	textsMissing = regexp.MustCompile(`(?i)configuration file '[^']*' does not exist|unable to find configuration file for (?:vm|ct)`)
	// textsSpace: a storage or a node is full.
	textsSpace = regexp.MustCompile(`(?i)no space left|not enough (?:free )?space|out of space|insufficient free space|` +
		`free space in thin pool .* reached threshold|cannot allocate memory`)
	// textsChanged: the configuration is another than the digest says.
	textsChanged = regexp.MustCompile(`(?i)checksum mismatch|detected modified configuration`)
)

// textsUnplugged: a running VM could not take a change, which then waits for its next
// start (vmconfig_hotplug_pending in qemu-server).
var textsUnplugged = regexp.MustCompile(`(?i)hotplug problem`)

// textsMember: a VM is in the resource pool already.
var textsMember = regexp.MustCompile(`(?i)already a pool member`)

// textsStorage: there is no such storage, or not on the node.
var textsStorage = regexp.MustCompile(`(?i)storage '[^']*' (?:does not exist|is not available on node)`)

// poolGone is the refusal of a resource pool that isn't there; a 403, too.
var poolGone = regexp.MustCompile(`pool '([^']*)' does not exist`)

const poolRemedy = "Make it in the cluster (Datacenter, Permissions, Pools), or set the account's pool or the instance's proxmox.pool_id to one that is there. It is a pool of the cluster's, not a bettercompute_pool."

var permissionForm = regexp.MustCompile(`Permission check failed \(([^,()]+), ([^()]+)\)`)

// noAnswer is the error of a request that got no answer. A certificate that isn't
// trusted stays so: that is no outage.
func noAnswer(ctx context.Context, what string, err error) error {
	out := backends.TransportError(ctx, what+": the Proxmox VE cluster", err)
	e := backends.AsError(out)
	if e == nil || e.Reason != backends.ReasonUnreachable {
		return out
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	if !untrusted && !errors.Is(err, errPin) {
		return out
	}
	trusted := *e
	trusted.Ambiguous = false // the request wasn't sent
	if errors.Is(err, errPin) {
		return trusted.WithRemedy("Compare the account's tls_fingerprint with the node's: on the node, \"openssl x509 -noout -fingerprint -sha256 -in /etc/pve/local/pveproxy-ssl.pem\" (or pve-ssl.pem, where that file isn't there). A renewed certificate has another one. If they are the same, someone is in between.")
	}
	return trusted.WithRemedy("The cluster's own certificates are not in the system's roots: set ca_certificate (on a node, /etc/pve/pve-root-ca.pem) or tls_fingerprint.")
}

// facts is an error with what every refusal has.
func facts(what string, a answer, said string) *backends.Error {
	e := backends.Errorf(backends.ProviderError, "%s: %s.", what, strings.TrimRight(said, ".! "))
	e.Details = map[string]any{"status": a.status, "code": ""}
	return e
}

// refused classifies an answer of 300 and above. It is never NOT_FOUND: existence is
// not for a refusal to tell.
func refused(what string, a answer) error {
	message, ours := readError(a)
	said := backends.Printable(message)
	if said == "" {
		said = fmt.Sprintf("the answer is status %d without an explanation", a.status)
	}
	e := facts(what, a, said)
	if message != "" {
		e.Details["message"] = said
	}
	switch {
	case a.status < http.StatusBadRequest:
		e.Message = what + ": the answer is a redirect, which is not followed."
		return e.WithRemedy("Check that the account's url is that of a Proxmox VE cluster, such as %s.", exampleURL)
	case a.status == http.StatusUnauthorized:
		e.Reason = backends.ReasonCredentials
		e.Remedy = "Check that the account's token reference names a token as user@realm!name=secret, and that the token was not deleted and has not expired."
	case a.status == http.StatusForbidden && poolGone.MatchString(message):
		pool := poolGone.FindStringSubmatch(message)[1]
		e.Message = fmt.Sprintf("%s: there is no resource pool %q in the cluster.", what, pool)
		e.Reason, e.Remedy = backends.ReasonInvalid, poolRemedy
	case a.status == http.StatusForbidden:
		e.Reason = backends.ReasonPermission
		e.Remedy = permissionRemedy(message)
	case a.status == statusConnect || a.status == statusRequest || a.status == statusAborted:
		e.Reason, e.Ambiguous = backends.ReasonUnreachable, true
		e.Message = fmt.Sprintf("%s: the cluster doesn't reach the node: %s.", what, strings.TrimRight(said, ". "))
		e.Remedy = "See whether the node is up."
	case a.status == http.StatusTooManyRequests:
		e.Code, e.Retryable = backends.RateLimited, true
	case textsLocked.MatchString(message):
		e.Reason, e.Retryable = backends.ReasonLocked, true
		e.Remedy = "Something else works on the VM. If it doesn't end, see the cluster's task list; a lock that a crash left is removed on the node with \"qm unlock VMID\"."
	case strings.Contains(message, "no quorum"):
		e.Retryable = true
		e.Remedy = "The cluster has lost its quorum: see which nodes are down."
	case a.status == http.StatusBadRequest && message == "":
		// What a server for HTTPS answers to plain HTTP.
		e.Reason = backends.ReasonInvalid
		e.Remedy = "If the account's url begins with http://, write https://: Proxmox VE speaks HTTPS."
	case a.status == http.StatusBadRequest:
		e.Reason = backends.ReasonInvalid
	case a.status == http.StatusInternalServerError && ours && message != "" && !strings.EqualFold(message, http.StatusText(a.status)):
		// The API's code has died on a check, or before it began a task.
		switch {
		case textsSpace.MatchString(message):
			e.Reason = backends.ReasonCapacity
		case textsStorage.MatchString(message):
			e.Reason = backends.ReasonInvalid
			e.Remedy = "Set the account's storage to one of the cluster's (Datacenter, Storage) that the node has, or leave it out."
		}
	case a.status == http.StatusNotImplemented || a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed:
		return e.WithRemedy("Check that the account's url is that of a Proxmox VE cluster (version 8 or 9), such as %s.", exampleURL)
	case a.status >= http.StatusInternalServerError || a.status == http.StatusRequestTimeout:
		e.Ambiguous = true
	}
	return e
}

// separation is what people miss who grant a privilege to a token's user.
const separation = " A token with privilege separation needs it itself, besides its user."

// permissionRemedy says which privilege is missing, and where.
func permissionRemedy(message string) string {
	found := permissionForm.FindStringSubmatch(message)
	if found == nil {
		return "Give the account's token the privilege." + separation
	}
	path, privileges := backends.Printable(found[1]), strings.ReplaceAll(backends.Printable(found[2]), "|", " or ")
	return fmt.Sprintf("Give the account's token %s on %s (Datacenter, Permissions).", privileges, path) + separation
}

// readError is what an answer says is wrong: the body's message (since 8.4) or the
// status line's, and for bad parameters what is wrong with each. ours tells whether
// the body has the API's form.
func readError(a answer) (message string, ours bool) {
	var body struct {
		Message *string           `json:"message"`
		Errors  map[string]string `json:"errors"`
		Data    json.RawMessage   `json:"data"`
	}
	ours = json.Unmarshal(a.body, &body) == nil && (body.Data != nil || body.Message != nil)
	message = a.reason
	if ours && body.Message != nil && strings.TrimSpace(*body.Message) != "" {
		message = *body.Message
	}
	message = strings.TrimSpace(message)
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(body.Errors)) {
		wrong = append(wrong, name+": "+strings.TrimSpace(body.Errors[name]))
	}
	if len(wrong) > 0 {
		message = strings.TrimSpace(strings.TrimRight(message, ".") + ": " + strings.Join(wrong, "; "))
	}
	return message, ours
}

// isNodeDown tells whether err says that the node of a path can't be reached.
func isNodeDown(err error) bool {
	switch statusOf(err) {
	case statusConnect, statusRequest, statusAborted:
		return true
	default:
		return false
	}
}

// statusOf is the status of a refusal; 0 when err is none.
func statusOf(err error) int {
	e := backends.AsError(err)
	if e == nil {
		return 0
	}
	status, _ := e.Details["status"].(int)
	return status
}

// says tells whether err is a refusal, or a task's failure, of which the cluster's
// own words match.
func says(err error, texts *regexp.Regexp) bool {
	e := backends.AsError(err)
	if e == nil {
		return false
	}
	message, _ := e.Details["message"].(string)
	return texts.MatchString(message)
}

// isAmbiguous tells whether a call may have been carried out although no good answer
// came.
func isAmbiguous(err error) bool {
	e := backends.AsError(err)
	return e != nil && e.Ambiguous
}
