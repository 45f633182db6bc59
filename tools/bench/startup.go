// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// starts is how often the start is timed; the median counts.
const starts = 11

// protocol is the plugin protocol's version, and handshake what the CLIs say before
// it (https://developer.hashicorp.com/terraform/plugin/terraform-plugin-protocol).
const protocol = 6

var handshake = plugin.HandshakeConfig{
	ProtocolVersion:  4,
	MagicCookieKey:   "TF_PLUGIN_MAGIC_COOKIE",
	MagicCookieValue: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
}

// startTime is the median time from the start of a provider's process until it has
// answered GetProviderSchema, as a CLI starts and asks it.
func startTime(ctx context.Context, binary string) (time.Duration, error) {
	var times []time.Duration
	for range starts {
		t, err := startOnce(ctx, binary)
		if err != nil {
			return 0, err
		}
		times = append(times, t)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

func startOnce(ctx context.Context, binary string) (time.Duration, error) {
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  handshake,
		VersionedPlugins: map[int]plugin.PluginSet{protocol: {"provider": connection{}}},
		Cmd:              exec.CommandContext(ctx, binary),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         true,
		Logger:           hclog.NewNullLogger(),
	})
	defer client.Kill()
	begin := time.Now()
	session, err := client.Client()
	if err != nil {
		return 0, err
	}
	made, err := session.Dispense("provider")
	if err != nil {
		return 0, err
	}
	conn, ok := made.(*grpc.ClientConn)
	if !ok {
		return 0, errors.New("the plugin library made no connection")
	}
	var schema message
	err = conn.Invoke(ctx, "/tfplugin6.Provider/GetProviderSchema", &message{}, &schema,
		grpc.ForceCodec(bytesCodec{}), grpc.MaxCallRecvMsgSize(64<<20))
	took := time.Since(begin)
	if err == nil && len(schema) == 0 {
		err = errors.New("the provider answered with no schema")
	}
	return took, err
}

// connection is a plugin that is nothing but the connection to it.
type connection struct{ plugin.NetRPCUnsupportedPlugin }

// GRPCServer implements [plugin.GRPCPlugin].
func (connection) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("this is a client")
}

// GRPCClient implements [plugin.GRPCPlugin].
func (connection) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// message is an encoded message of the protocol: how long it is says enough, and the
// generated types of the protocol are internal to the plugin library.
type message []byte

// bytesCodec leaves messages as they are.
type bytesCodec struct{}

// Marshal implements [encoding.Codec] of gRPC.
func (bytesCodec) Marshal(v any) ([]byte, error) {
	m, ok := v.(*message)
	if !ok {
		return nil, errors.New("not a message")
	}
	return *m, nil
}

// Unmarshal implements [encoding.Codec] of gRPC.
func (bytesCodec) Unmarshal(data []byte, v any) error {
	m, ok := v.(*message)
	if !ok {
		return errors.New("not a message")
	}
	*m = slices.Clone(data)
	return nil
}

// Name implements [encoding.Codec] of gRPC: the CLIs' own codec has this name.
func (bytesCodec) Name() string { return "proto" }
