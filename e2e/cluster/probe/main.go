// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe asks one question of a network and answers with one line and an
// exit code that tells a refused connection from one that was dropped. It stands
// alone in an image without a shell.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Exit codes beside 0, which means that the answer came.
const (
	exitUsage   = 2
	exitRefused = 10
	exitTimeout = 11
	exitOther   = 12
	// exitNegative is an answer that says no: an HTTP error or an unknown name.
	exitNegative = 13
)

const usage = `probe tcp HOST:PORT [-timeout 3s]              open a TCP connection
probe udp HOST:PORT [-timeout 3s]              send a UDP datagram and wait for the answer
probe ask [tcp:|udp:|dns:|dnstcp:]TARGET...    ask all targets once, at the same time; a line for each that begins
                                               with the exit code that its own command would have
probe loop [tcp:|udp:|dns:|dnstcp:]TARGET...   ask again and again, all targets at once, until SIGTERM; a line for
                                               each that answers, and for each that does not or no more; tcp
                                               where none is named
probe http URL [-timeout 3s] [-insecure]       GET a URL; -insecure accepts any certificate
probe dns NAME[@HOST:PORT] [-timeout 3s]       look a name up, at that server if one is named
probe dnstcp NAME[@HOST:PORT] [-timeout 3s]    the same over TCP
probe serve ADDRESS                            answer HTTP requests and UDP datagrams, for example on :8080
probe sleep                                    wait for SIGTERM

exit codes: 0 answered, 2 wrong usage, 10 refused, 11 timed out, 12 other failure,
13 answered in the negative (HTTP status 400 or more, name not found)
`

// options are the flags of all commands.
type options struct {
	timeout  time.Duration
	insecure bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout)
	stop()
	os.Exit(code)
}

// run carries out one command, prints its line and returns the exit code.
func run(ctx context.Context, args []string, out io.Writer) int {
	command, targets, opts, err := parse(args)
	if err != nil {
		_, _ = fmt.Fprintf(out, "%v\n\n%s", err, usage)
		return exitUsage
	}
	if ask, asks := askings()[command]; asks {
		return once(ctx, ask, targets[0], opts, out)
	}
	switch command {
	case "ask":
		return askAll(ctx, targets, opts, out)
	case "loop":
		return loop(ctx, targets, out)
	case "http":
		return get(ctx, targets[0], opts, out)
	case "serve":
		return serve(ctx, targets[0], out)
	default:
		<-ctx.Done()
		return 0
	}
}

// parse accepts flags before and after the targets, since both read well.
func parse(args []string) (command string, targets []string, opts options, err error) {
	if len(args) == 0 {
		return "", nil, opts, errors.New("no command given")
	}
	command = args[0]
	least, most := 1, 1
	switch command {
	case "tcp", "udp", "http", "dns", "dnstcp", "serve":
	case "ask", "loop":
		most = len(args)
	case "sleep":
		least, most = 0, 0
	default:
		return "", nil, opts, fmt.Errorf("unknown command %q", command)
	}
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.DurationVar(&opts.timeout, "timeout", 3*time.Second, "give up after this time")
	flags.BoolVar(&opts.insecure, "insecure", false, "accept any certificate")

	for rest := args[1:]; ; rest = flags.Args()[1:] {
		if err := flags.Parse(rest); err != nil {
			return "", nil, opts, fmt.Errorf("%s: %w", command, err)
		}
		if flags.NArg() == 0 {
			break
		}
		targets = append(targets, flags.Arg(0))
	}
	if len(targets) < least || len(targets) > most {
		return "", nil, opts, fmt.Errorf("%s: wrong number of arguments", command)
	}
	return command, targets, opts, nil
}
