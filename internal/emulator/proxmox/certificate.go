// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"strings"
	"time"
)

// certificateLife is how long the certificate is good: longer than anyone lets an
// emulator run.
const certificateLife = 365 * 24 * time.Hour

// newCertificate makes a self-signed certificate for loopback addresses and the
// nodes, and its SHA-256 fingerprint as Proxmox VE writes it.
func newCertificate(nodes []string, now time.Time) (tls.Certificate, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("making a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("making a serial number: %w", err)
	}
	names := []string{"localhost"}
	names = append(names, nodes...)
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: nodes[0], Organization: []string{"Emulated Proxmox VE"}},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(certificateLife),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		DNSNames:              names,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("making a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("reading the certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, fingerprint(der), nil
}

// fingerprint is the SHA-256 of a certificate in pairs of upper-case hex digits.
func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	pairs := make([]string, len(sum))
	for i, b := range sum {
		pairs[i] = fmt.Sprintf("%02X", b)
	}
	return strings.Join(pairs, ":")
}

// TLSConfig is what the listener of the service speaks: TLS 1.2 and 1.3 and, as
// the real one, HTTP/1.1 only. nil: plain HTTP.
func (s *Service) TLSConfig() *tls.Config {
	if s.options.PlainHTTP {
		return nil
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{s.certificate},
		NextProtos:   []string{"http/1.1"},
	}
}

// Fingerprint is the SHA-256 of the certificate; empty with plain HTTP.
func (s *Service) Fingerprint() string { return s.fingerprint }

// Certificate is the certificate, which signs itself; nil with plain HTTP.
func (s *Service) Certificate() *x509.Certificate { return s.certificate.Leaf }
