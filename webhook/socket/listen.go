// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
)

// again is how long a server waits before it calls a keeper again that was away.
const again = time.Second

// Listen gives the TCP socket that the keeper at path has. When the keeper has none, or is away,
// it opens one on address, and leaves it with the keeper as soon as there is one. Until ctx
// ends it does so again whenever the keeper was away.
func Listen(ctx context.Context, path, address string, log logr.Logger) (net.Listener, error) {
	conn, kept, err := call(ctx, path)
	if err != nil {
		log.Info("the keeper of the socket is away: connections are refused should this process be killed meanwhile", "reason", err.Error())
	}
	var listener net.Listener
	if kept != nil {
		defer func() { _ = kept.Close() }() // the listener has a duplicate
		listener, err = net.FileListener(kept)
	} else {
		listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	}
	var own *os.File
	if err == nil {
		own, err = duplicate(listener)
	}
	if err != nil {
		hangUp(conn)
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	go leave(ctx, path, own, conn, log)
	return listener, nil
}

// call connects to the keeper and asks what it keeps.
func call(ctx context.Context, path string) (*net.UnixConn, *os.File, error) {
	dialed, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, nil, err
	}
	conn, _ := dialed.(*net.UnixConn)
	kept, err := receive(conn)
	if err != nil {
		hangUp(conn)
		return nil, nil, fmt.Errorf("ask what %s keeps: %w", path, err)
	}
	return conn, kept, nil
}

// leave leaves the socket with the keeper, over conn when it is connected already, and again
// whenever the keeper was away.
func leave(ctx context.Context, path string, own *os.File, conn *net.UnixConn, log logr.Logger) {
	defer func() { _ = own.Close() }() // a duplicate
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		connected := conn
		conn = nil
		if connected == nil {
			var kept *os.File
			var err error
			if connected, kept, err = call(ctx, path); err != nil {
				return
			}
			if kept != nil {
				_ = kept.Close() // what this process serves is kept from now on
			}
		}
		defer hangUp(connected)
		defer context.AfterFunc(ctx, func() { hangUp(connected) })() // receive says so
		if err := send(connected, own); err != nil {
			return
		}
		log.Info("the keeper has the socket")
		if _, err := receive(connected); ctx.Err() == nil {
			log.Info("the keeper of the socket is away", "reason", err)
		}
	}, again)
}

// duplicate gives the descriptor of a listener, whose end does not end the duplicate.
func duplicate(listener net.Listener) (*os.File, error) {
	tcp, is := listener.(*net.TCPListener)
	if !is {
		return nil, errors.Join(fmt.Errorf("it is a %T, not a TCP socket", listener), listener.Close())
	}
	return tcp.File()
}

func hangUp(conn *net.UnixConn) {
	if conn != nil {
		_ = conn.Close() // nothing is lost: all was sent
	}
}
