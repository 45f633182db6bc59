// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// closing is how long an ending emulator waits for answers under way.
const closing = 2 * time.Second

// Listening says where an emulator is to listen, and tells where it does.
type Listening struct {
	// Control is the address of the control API, host and port.
	Control string
	// Services are the addresses of the services by their names.
	Services map[string]string
	// Ready is called once all ports are open, with the addresses really bound
	// (a port 0 has become a number).
	Ready func(control string, services map[string]string)
}

// ListenAndServe serves the services and the control API until the context
// ends, which is no error, or a listener fails. All addresses must be loopback
// ones: the emulators ask for no real credentials. Port 0 is any free port.
func (e *Emulator) ListenAndServe(ctx context.Context, where Listening) (err error) {
	serving, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	var servers []*http.Server
	var listeners []net.Listener
	defer func() {
		for i, server := range servers {
			err = errors.Join(err, shutDown(server, listeners[i]))
		}
	}()
	open := func(address string, handler http.Handler, security *tls.Config) (string, error) {
		listener, err := listenLoopback(ctx, address)
		if err != nil {
			return "", err
		}
		servers = append(servers, &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: time.Minute,
			// Held and delayed calls end with the emulator.
			BaseContext: func(net.Listener) context.Context { return serving },
		})
		bound := listener.Addr().String()
		if security != nil {
			listener = tls.NewListener(listener, security)
		}
		listeners = append(listeners, listener)
		return bound, nil
	}

	bound := map[string]string{}
	for _, service := range e.services {
		name := service.Gate().Name()
		if bound[name], err = open(where.Services[name], service, tlsConfig(service)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	control, err := open(where.Control, e.Control(), nil)
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	for i, server := range servers {
		go func() {
			if err := server.Serve(listeners[i]); !errors.Is(err, http.ErrServerClosed) {
				stop(err)
			}
		}()
	}
	if where.Ready != nil {
		where.Ready(control, bound)
	}
	<-serving.Done()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(serving)
}

// shutDown ends a server, by force when its answers take too long.
func shutDown(server *http.Server, listener net.Listener) error {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	// A server that never began to serve doesn't know its listener.
	if closeErr := listener.Close(); !errors.Is(closeErr, net.ErrClosed) {
		err = errors.Join(err, closeErr)
	}
	return err
}

// CheckLoopback reports an address (host and port) that others could reach.
func CheckLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address such as 127.0.0.1:8801: %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q is not a loopback address; the emulators listen on 127.0.0.1, ::1 or localhost only", address)
	}
	return nil
}

func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	if err := CheckLoopback(address); err != nil {
		return nil, err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("%q is not a loopback address here", address), listener.Close())
	}
	return listener, nil
}
