// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// errPin is the failure of a certificate that isn't the pinned one.
var errPin = errors.New("the certificate is not the one of tls_fingerprint")

// newTransport is a transport that holds the cluster's certificate against what the
// account says: a pinned leaf, a certificate authority, nothing at all, or else the
// system's roots. It speaks HTTP/1.1 only, since HTTP/2 has no reason phrase, which
// is where Proxmox VE before 8.4 says what is wrong.
func newTransport(endpoint *url.URL, config backends.Values, secrets backends.Secrets) (*http.Transport, error) {
	t := backends.NewTransport()
	t.ForceAttemptHTTP2 = false
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	switch {
	case config.Has("tls_fingerprint"):
		pin, ok := fingerprint(config.String("tls_fingerprint"))
		if !ok {
			return nil, backends.Errorf(backends.InvalidConfig, "%s", checkFingerprint("")).At(attribute, "tls_fingerprint")
		}
		t.TLSClientConfig.InsecureSkipVerify = true // VerifyConnection does it
		t.TLSClientConfig.VerifyConnection = func(state tls.ConnectionState) error { return checkPin(state, pin) }
	case config.Has("ca_certificate"):
		authority := config.String("ca_certificate")
		t.TLSClientConfig.InsecureSkipVerify = true // VerifyConnection does it
		t.TLSClientConfig.VerifyConnection = func(state tls.ConnectionState) error {
			roots, err := authorities(authority, secrets)
			if err != nil {
				return err
			}
			return checkChain(state, roots, endpoint.Hostname())
		}
	case config.Bool("insecure"):
		t.TLSClientConfig.InsecureSkipVerify = true // the account asks for it
	}
	return t, nil
}

func checkPin(state tls.ConnectionState, pin []byte) error {
	if len(state.PeerCertificates) == 0 {
		return errPin
	}
	sum := sha256.Sum256(state.PeerCertificates[0].Raw)
	if subtle.ConstantTimeCompare(sum[:], pin) != 1 {
		return errPin
	}
	return nil
}

// checkChain is what crypto/tls does by itself where the roots are known beforehand.
func checkChain(state tls.ConnectionState, roots *x509.CertPool, host string) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the cluster shows no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: host})
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
	}
	return nil
}

// resolveTime bounds the resolving of a reference where a handshake waits for it.
const resolveTime = 30 * time.Second

// authorities are the certificates of ca_certificate: a reference is resolved for
// each connection, so that a new one needs no restart.
func authorities(value string, secrets backends.Secrets) (*x509.CertPool, error) {
	if isReference(value) {
		ctx, cancel := context.WithTimeout(context.Background(), resolveTime)
		defer cancel()
		resolved, err := secrets.Resolve(ctx, value)
		if err != nil {
			return nil, err
		}
		value = resolved
	}
	found := certificates(value)
	if len(found) == 0 {
		return nil, backends.Errorf(backends.InvalidConfig, "What ca_certificate refers to is no certificate.").At(attribute, "ca_certificate").
			WithRemedy("It is a certificate in PEM, or in DER and base64.")
	}
	pool := x509.NewCertPool()
	for _, c := range found {
		pool.AddCert(c)
	}
	return pool, nil
}

// certificates are those of a text, in PEM or as DER in base64.
func certificates(value string) []*x509.Certificate {
	var out []*x509.Certificate
	for rest := []byte(value); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if c, err := x509.ParseCertificate(block.Bytes); block.Type == "CERTIFICATE" && err == nil {
			out = append(out, c)
		}
	}
	if len(out) > 0 {
		return out
	}
	value = strings.TrimRight(strings.TrimSpace(value), "=")
	for _, encoding := range []*base64.Encoding{base64.RawURLEncoding, base64.RawStdEncoding} {
		if der, err := encoding.DecodeString(value); err == nil {
			if c, err := x509.ParseCertificate(der); err == nil {
				return []*x509.Certificate{c}
			}
		}
	}
	return nil
}

// referenceForm is what a secret reference looks like.
var referenceForm = regexp.MustCompile(`^(?:env|secret|vault)://.`)

func isReference(s string) bool { return referenceForm.MatchString(s) }

func checkCA(s string) string {
	if isReference(s) || len(certificates(s)) > 0 {
		return ""
	}
	return "It is neither a secret reference nor a certificate in PEM, or in DER and base64url."
}

// fingerprint reads a SHA-256 in hex, with or without colons.
func fingerprint(s string) ([]byte, bool) {
	sum, err := hex.DecodeString(strings.ReplaceAll(s, ":", ""))
	return sum, err == nil && len(sum) == sha256.Size
}

func checkFingerprint(s string) string {
	if _, ok := fingerprint(s); !ok {
		return "A fingerprint is the SHA-256 of the certificate: 64 hex digits, with or without colons."
	}
	return ""
}
