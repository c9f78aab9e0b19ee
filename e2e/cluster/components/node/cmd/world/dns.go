// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
)

// Parts of a DNS message.
const (
	headerSize    = 12
	typeAndClass  = 4
	typeA         = 1
	answeredFlags = 0x8580 // a response, by an authority, with recursion
)

// record is the answer to a question for an address, which stands at the message's begin:
// a pointer to the name, type A, class IN, a minute to live, and 203.0.113.10.
var record = []byte{0xc0, headerSize, 0, typeA, 0, 1, 0, 0, 0, 60, 0, 4, 203, 0, 113, 10}

// resolve answers a question for the IPv4 address of any name; other questions have an
// empty answer, and what is no question has none.
func resolve(query []byte) []byte {
	if len(query) < headerSize || binary.BigEndian.Uint16(query[4:]) != 1 {
		return nil
	}
	end := bytes.IndexByte(query[headerSize:], 0)
	if end < 0 || len(query) < headerSize+end+1+typeAndClass {
		return nil
	}
	question := query[headerSize : headerSize+end+1+typeAndClass]
	reply := append(make([]byte, headerSize, headerSize+len(question)+len(record)), question...)
	copy(reply, query[:2])
	binary.BigEndian.PutUint16(reply[2:], answeredFlags)
	binary.BigEndian.PutUint16(reply[4:], 1)
	if binary.BigEndian.Uint16(question[end+1:]) == typeA {
		binary.BigEndian.PutUint16(reply[6:], 1)
		reply = append(reply, record...)
	}
	return reply
}
