package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// bed is the part of testing.TB that redistest needs. This program is not
// one.
type bed struct {
	testing.TB // nil: only the methods below are called
	cleanups   []func()
}

func (*bed) Helper()            {}
func (b *bed) Cleanup(f func()) { b.cleanups = append(b.cleanups, f) }
func (b *bed) TempDir() string {
	dir := algo.Must(os.MkdirTemp("", "bench-redis-"))
	b.Cleanup(func() { _ = os.RemoveAll(dir) }) // after the server, which has its cleanup before
	return dir
}
func (*bed) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (*bed) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

// startRedis runs a server until stop is called.
func startRedis() (addr string, stop func(), err error) {
	b := new(bed)
	stop = func() {
		for _, f := range b.cleanups {
			f()
		}
	}
	defer func() {
		if p := recover(); p != nil {
			stop()
			err = fmt.Errorf("%v", p)
		}
	}()
	return redistest.Start(b).Addr(), stop, nil
}
