// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// The byte of a message: ancillary data needs one to go with.
const (
	nothing = '0'
	here    = '1'
)

// send tells the other side of a socket, or with nil that there is none.
func send(conn *net.UnixConn, kept *os.File) error {
	if kept == nil {
		_, err := conn.Write([]byte{nothing})
		return err
	}
	raw, err := kept.SyscallConn()
	if err != nil {
		return err
	}
	// Unlike Fd, this leaves alone whether reading from the socket blocks, which whoever
	// serves it shares.
	var sendErr error
	if err := raw.Control(func(fd uintptr) {
		_, _, sendErr = conn.WriteMsgUnix([]byte{here}, syscall.UnixRights(int(fd)), nil)
	}); err != nil {
		return err
	}
	return sendErr
}

// receive waits for a message, and gives the socket that came with it or nil. The error is
// io.EOF when the other side has ended.
func receive(conn *net.UnixConn) (*os.File, error) {
	text, rights := make([]byte, 1), make([]byte, syscall.CmsgSpace(4))
	n, oob, _, _, err := conn.ReadMsgUnix(text, rights)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	if text[0] == nothing {
		return nil, nil
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:oob])
	if err != nil {
		return nil, fmt.Errorf("read ancillary data: %w", err)
	}
	if len(messages) == 0 {
		return nil, errors.New("a socket was announced and none came")
	}
	descriptors, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, fmt.Errorf("read a descriptor: %w", err)
	}
	return os.NewFile(uintptr(descriptors[0]), "kept"), nil
}
