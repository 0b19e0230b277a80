package main

import (
	"errors"
	"strings"
	"time"

	"github.com/sluice-go/sluice/bench/loadgen"
)

// openBefore is the number of connections that the clients have open before the overload.
const openBefore = 4000

// rig is one server under test: "default" is HTTP, "default/listener" HTTP with denials at
// the socket, "default/grpc" gRPC and "default/tap" gRPC with a tap handle.
type rig struct{ work, limiter, spin string }

func (r rig) name() string { name, _, _ := strings.Cut(r.limiter, "/"); return name }

func (r rig) transport() string {
	switch _, over, _ := strings.Cut(r.limiter, "/"); over {
	case "", "listener":
		return "http"
	}
	return "grpc"
}

// with starts the server, hands it to do, and stops it.
func (r rig) with(do func(target) error) error {
	args := []string{"-work", r.work, "-limiter", r.name(), "-spin", r.spin}
	if r.transport() == "grpc" {
		args = append(args, "-grpc")
	}
	if strings.HasSuffix(r.limiter, "/listener") {
		args = append(args, "-listener")
	}
	if strings.HasSuffix(r.limiter, "/tap") {
		args = append(args, "-tap")
	}
	s, err := startServer(*bin, args...)
	if err != nil {
		return err
	}
	return errors.Join(r.load(s, do), s.stop())
}

func (r rig) load(s *server, do func(target) error) error {
	if r.transport() == "http" {
		return do(httpTarget{s})
	}
	c, err := dialRPC(s.addr)
	if err != nil {
		return err
	}
	defer c.close()
	return do(rpcTarget{s, c})
}

// target is a server and a way to load it.
type target interface {
	closed(n int, d time.Duration) (ok, other int64, err error)
	run(patience time.Duration, phases []loadgen.Phase) ([]loadgen.Answer, error)
	cpu() time.Duration
}

type httpTarget struct{ *server }

func (t httpTarget) url() string { return "http://" + t.addr + "/" }

func (t httpTarget) closed(n int, d time.Duration) (ok, other int64, err error) {
	return loadgen.Closed(t.url(), n, d)
}

func (t httpTarget) run(patience time.Duration, phases []loadgen.Phase) ([]loadgen.Answer, error) {
	return loadgen.Run(loadgen.Config{URL: t.url(), Timeout: patience, MaxOpen: 16000, Open: openBefore, Seed: *seed, Phases: phases})
}

type rpcTarget struct {
	*server
	client *rpcClient
}

func (t rpcTarget) closed(n int, d time.Duration) (ok, other int64, err error) {
	ok, other = t.client.closed(n, d)
	return ok, other, nil
}

func (t rpcTarget) run(patience time.Duration, phases []loadgen.Phase) ([]loadgen.Answer, error) {
	return t.client.run(loadgen.Config{Timeout: patience, Seed: *seed, Phases: phases}), nil
}
