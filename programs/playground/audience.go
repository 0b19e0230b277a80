package main

import (
	"context"
	"errors"
	"sync"
)

// mostWatchers is how many pages may watch at the same time.
const mostWatchers = 16

var (
	errFull  = errors.New("too many pages are open")
	errEmpty = errors.New("no page is open")
)

// audience runs something while a page is open.
type audience struct {
	run func(ctx context.Context)

	mu       sync.Mutex
	watchers int
	stop     func() // and wait
}

// enter counts a watcher in, until leave is called. The last one to leave waits
// for the end of the running work.
func (a *audience) enter() (leave func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watchers == mostWatchers {
		return nil, errFull
	}
	if a.watchers++; a.watchers == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			a.run(ctx)
		}()
		a.stop = func() {
			cancel()
			<-ended
		}
	}
	return sync.OnceFunc(a.leave), nil
}

// during runs f while a page is open, one at a time: no page can leave before f
// has returned.
func (a *audience) during(f func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watchers == 0 {
		return errEmpty
	}
	return f()
}

func (a *audience) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watchers--; a.watchers == 0 {
		a.stop()
	}
}
