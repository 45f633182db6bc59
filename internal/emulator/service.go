// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
)

// Backend is what a cloud's emulator gives its [Front].
type Backend interface {
	// Name is the word for the service in the control API, e.g. in "?service=".
	Name() string
	// BasePath is the path all of the API's routes begin with, without a
	// trailing slash, e.g. "/v1".
	BasePath() string
	// Kinds are the fault kinds that the service carries out besides those
	// that every service has (see [CommonKinds]).
	Kinds() []Kind
	// Serve answers a call. It finds the faults it has to carry out itself
	// with [FaultFor].
	Serve(w http.ResponseWriter, r *http.Request)
	// Refuse answers a call with an error in the vendor's form and without any
	// effect. The rule's kind is KindStatus (with the rule's Status) or one of
	// the rate-limit kinds that the backend lists.
	Refuse(w http.ResponseWriter, r *http.Request, rule Rule)
}

// Service is a whole emulated cloud, as the [Emulator] serves it.
type Service interface {
	http.Handler
	// Gate is the service's front, which the control API reads and sets.
	Gate() *Front
	// Objects lists what exists now, in every project.
	Objects() Objects
	// Snapshot is everything that a state file must keep.
	Snapshot() (json.RawMessage, error)
	// Restore replaces the service's objects by those of a snapshot.
	Restore(snapshot json.RawMessage) error
}

// Secured is a [Service] that is served over TLS where its TLSConfig isn't nil.
type Secured interface{ TLSConfig() *tls.Config }

// tlsConfig is what a service's listener speaks; nil: plain HTTP.
func tlsConfig(service Service) *tls.Config {
	if secured, ok := service.(Secured); ok {
		return secured.TLSConfig()
	}
	return nil
}

// URL is where a service is that listens at an address.
func URL(service Service, address string) string {
	if tlsConfig(service) != nil {
		return "https://" + address
	}
	return "http://" + address
}

// Objects are the rows of the control API's /objects.
type Objects struct {
	Machines  []Object `json:"machines"`
	Volumes   []Object `json:"volumes"`
	Snapshots []Object `json:"snapshots"`
}

// Object is one thing in an emulated cloud.
type Object struct {
	// ID is the cloud's id, as text whatever its type in the API.
	ID   string `json:"id"`
	Name string `json:"name"`
	// State is the vendor's own word.
	State string `json:"state"`
	// Managed tells whether the object carries the managed marker of this
	// provider.
	Managed bool `json:"managed"`
}
