// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package secrets

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/hashicorp/vault/api"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// What a failed read means for a try at another path.
var (
	errMissing = errors.New("no secret there")
	errDenied  = errors.New("permission denied")
)

func missing(path string) *backends.Error {
	e := failure("vault://%s can't be resolved: Vault has no secret there.", path).
		WithRemedy("Check the path and the namespace. Write it as `vault kv get %s` takes it, without data/ after the mount.", path)
	e.Err = errMissing
	return e
}

// vaultFailure says in our words what Vault's refusal means. The library's own
// text holds the address as it was given and whatever the server sent.
func vaultFailure(client *api.Client, path string, err error) error {
	if backends.AsError(err) != nil {
		return err
	}
	status, texts := statusOf(err)
	if status == 0 {
		return noAnswer(client, path, err)
	}
	said := strings.ToLower(strings.Join(texts, " "))
	var e *backends.Error
	switch {
	case strings.Contains(said, "missing client token") || (status == http.StatusForbidden && client.Token() == ""):
		e = failure("vault://%s can't be resolved: there is no token for Vault.", path).
			WithRemedy("Set vault = { token = … } in the provider block, or export %s. A login kept in a file by `vault login` is not read.", api.EnvVaultToken)
		e.Err = errDenied
	case status == http.StatusForbidden:
		e = failure("vault://%s can't be resolved: Vault denies the permission.", path).
			WithRemedy("Check that the token is valid and hasn't run out, that its policies allow read on the path (on mount/data/… for KV v2), and that the namespace is the right one.")
		e.Err = errDenied
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return missing(path)
	case status == http.StatusServiceUnavailable && strings.Contains(said, "sealed"):
		e = failure("vault://%s can't be resolved: the Vault at %s is sealed.", path, where(client)).
			WithRemedy("Unseal it, then run again.")
	case status == http.StatusTooManyRequests:
		e = failure("vault://%s can't be resolved: Vault asks us to slow down.", path).
			WithRemedy("Run again later, or raise Vault's rate limit quota.")
		e.Retryable = true
	case status >= 500:
		e = failure("vault://%s can't be resolved: the Vault at %s answers %d.", path, where(client), status).
			WithRemedy("Check Vault's health (`vault status`), then run again.")
		e.Retryable = true
	default:
		e = failure("vault://%s can't be resolved: the server at %s answers %d, which a Vault does not answer to a read.", path, where(client), status).
			WithRemedy("Check the address and the namespace.")
	}
	e.Details = map[string]any{"status": status}
	return e
}

// noAnswer is for what never became an answer. A server that isn't there, or
// isn't trusted, won't be in a moment either, so only the rest is Retryable.
func noAnswer(client *api.Client, path string, err error) error {
	var (
		dns     *net.DNSError
		sending *url.Error
		timeout interface{ Timeout() bool }
		host    = where(client)
		e       *backends.Error
	)
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		e = failure("vault://%s can't be resolved: the Vault at %s doesn't answer in time.", path, host).
			WithRemedy("Check the network and Vault's health, then run again.")
		e.Retryable = true
	case errors.Is(err, syscall.ECONNREFUSED):
		e = failure("vault://%s can't be resolved: nothing listens at %s.", path, host).
			WithRemedy("Check vault.address of the provider block or %s, and that Vault runs.", api.EnvVaultAddress)
	case errors.As(err, &dns) && dns.IsNotFound:
		e = failure("vault://%s can't be resolved: there is no host of the name in %s.", path, host).
			WithRemedy("Check vault.address of the provider block or %s.", api.EnvVaultAddress)
	case isCertificate(err):
		e = failure("vault://%s can't be resolved: the certificate of %s is not trusted.", path, host).
			WithRemedy("Export VAULT_CACERT with the file of the authority that signed it.")
	case errors.As(err, &sending):
		e = failure("vault://%s can't be resolved: the Vault at %s can't be reached.", path, host).
			WithRemedy("Check the address, its scheme (http or https) and the network, then run again.")
		e.Retryable = true
	default:
		// The library refused to send (a token with characters that no header holds),
		// or the answer isn't JSON.
		e = failure("vault://%s can't be resolved: the token can't be sent, or the server at %s doesn't answer as a Vault does.", path, host).
			WithRemedy("Check the address, and that the token is one line of printable characters.")
	}
	return e
}

// where is the address without userinfo and query, which may hold credentials.
func where(client *api.Client) string {
	u, err := url.Parse(client.Address())
	if err != nil {
		return "its address"
	}
	// In user:12/secret@host, which lacks an escape, host and port are read where
	// credentials are meant.
	return backends.WithoutUserinfo(u.Scheme + "://" + u.Host + u.Path)
}

// isCertificate tells whether a connection failed because of the server's
// certificate.
func isCertificate(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &hostname) || errors.As(err, &invalid)
}

// statusOf is the status of Vault's refusal and what it says; 0 when err is none:
// https://developer.hashicorp.com/vault/api-docs#http-status-codes.
func statusOf(err error) (status int, texts []string) {
	var e *api.ResponseError
	if !errors.As(err, &e) {
		return 0, nil
	}
	if e.RawError {
		return e.StatusCode, nil // a page of something that isn't Vault
	}
	return e.StatusCode, e.Errors
}

// refused are the answers after which another path is worth a try.
func refused(err error) bool {
	switch status, _ := statusOf(err); status {
	case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}
