// Command load puts wrk in front of the gateway: it measures the cost of the
// gateway beside a bare reverse proxy and beside none, whether limits hold,
// and whether a changed file drops requests or forgets debt. Everything runs
// in processes of its own on free ports of 127.0.0.1.
//
//	go run ./load [-seconds 5] [-rounds 3]
//
// It needs wrk (Debian: apt-get install wrk). Compare its rows with each other:
// all processes, wrk among them, share the processors of this machine.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	seconds := flag.Int("seconds", 5, "length of each run of wrk")
	rounds := flag.Int("rounds", 3, "runs of each row, of which the median counts")
	flag.Parse()
	var err error
	switch flag.Arg(0) {
	case "upstream":
		err = serveUpstream()
	case "bare":
		err = serveBare(flag.Arg(1))
	default:
		err = measure(*seconds, *rounds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func measure(seconds, rounds int) error {
	r, err := newRig()
	if err != nil {
		return err
	}
	defer r.close()
	for _, step := range []func() error{
		func() error { return r.overhead(seconds, rounds) },
		func() error { return r.limitsHold(seconds) },
		func() error { return r.reloads(seconds) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
