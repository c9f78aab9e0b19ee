// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package socket keeps a listening socket open while the process that serves it is away.
//
// A process that is killed takes its listening socket with it: until the Service knows, its
// address refuses connections, and each of them is a request that the apiserver refuses. So a
// second process, [Keep], holds a duplicate. The kernel then lets connections wait: they are
// answered by the process that comes next, or their requests go over the first connection that
// the apiserver opens to another replica.
//
// Both talk over a Unix socket. Whoever serves connects and is told first what is kept; what it
// sends then is kept instead. A message is one byte, with the socket as its ancillary data when
// there is one. The connection stays, so that each sees the other end.
package socket
