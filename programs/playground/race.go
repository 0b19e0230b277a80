package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw/admin"
	"github.com/sluice-go/sluice/keyfunc"
)

const (
	shortestNap = time.Millisecond
	longestNap  = 20 * time.Millisecond
)

// user sends requests, and is the key of their limit.
type user struct {
	name string
	hash uint64
}

// race sends the same traffic through all lanes, while it runs. Its time is the
// real one, since the limiters decide by that.
type race struct {
	epoch  time.Time
	chosen chosen
	lanes  []*lane
	users  []user

	mu       sync.Mutex // guards the fields below
	settings settings
	traffic  *traffic
	began    time.Duration // when the traffic did
	coming   arrival
	queue    queue
	offered  strip // begun: the arrivals
	now      time.Duration
}

func newRace(observe telemetry.Observer) (*race, error) {
	r := &race{epoch: time.Now(), settings: preset("burst")}
	for i := range mostUsers {
		name := "user-" + strconv.Itoa(i)
		r.users = append(r.users, user{name, keyfunc.Hash(name)})
	}
	r.chosen.limit.Store(int64(r.settings.Limit))
	r.chosen.burst.Store(int64(r.settings.Burst))
	for _, a := range algorithms {
		l, err := a.make(&r.chosen)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
		r.lanes = append(r.lanes, &lane{algorithm: a, limiter: l, asked: admin.Control(l), observe: observe})
	}
	r.restart()
	return r, nil
}

// restart starts the traffic and the counts anew. The limiters keep their
// state.
func (r *race) restart() {
	l, _ := loadNamed(r.settings.Load)
	r.traffic = newTraffic(l, r.settings.Rate, r.settings.Users)
	r.began = r.now
	r.coming = r.traffic.next()
	r.offered.starts.restart()
	for _, l := range r.lanes {
		l.restart()
	}
}

// set changes the settings, and the limits of the running limiters with them.
func (r *race) set(s settings) error {
	if err := s.check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.chosen.limit.Store(int64(s.Limit))
	r.chosen.burst.Store(int64(s.Burst))
	for _, l := range r.lanes {
		if err := l.adjust(l.limiter, &r.chosen); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	r.settings = s
	r.restart()
	return nil
}

// reset drops all requests under way and the debt of all users.
func (r *race) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.queue.events {
		if e.a.lease != nil {
			e.a.end()
		}
	}
	r.queue = queue{}
	for _, l := range r.lanes {
		if f, ok := l.limiter.(interface{ Reset(key string) }); ok {
			for _, u := range r.users {
				f.Reset(u.name)
			}
		}
	}
	r.restart()
}

// advance does all that is due and returns when to come again.
func (r *race) advance() (nap time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if late := time.Since(r.epoch) - r.now; late > mostBehind {
		r.began += late
	}
	for {
		now := time.Since(r.epoch)
		for r.queue.next() <= now {
			e := r.queue.pop()
			r.move(e.at)
			r.happen(e)
		}
		r.move(now)
		arrives := r.began + r.coming.at
		if arrives > now {
			next := min(arrives, r.queue.next())
			return min(max(next-now, shortestNap), longestNap)
		}
		r.arrive()
	}
}

// move lets the time go on, not back.
func (r *race) move(to time.Duration) {
	r.now = max(r.now, to)
	r.offered.advance(r.now)
	for _, l := range r.lanes {
		l.strip.advance(r.now)
	}
}

// arrive offers the coming request to all lanes. It counts from now, when the
// limiters decide, which may be a little after it was due.
func (r *race) arrive() {
	r.offered.begin(false)
	c := r.coming
	for _, l := range r.lanes {
		a := &attempt{lane: l, user: c.user, work: c.work, tries: r.traffic.retries}
		a.ask(r.now, r.users[c.user], &r.queue)
	}
	r.coming = r.traffic.next()
}

func (r *race) happen(e event) {
	switch e.what {
	case begins:
		e.a.begin(r.now, &r.queue, true)
	case ends:
		e.a.end()
	case retries:
		r.move(time.Since(r.epoch))
		e.a.lane.totals.Retries++
		e.a.ask(r.now, r.users[e.a.user], &r.queue)
	}
}

// mostBehind is how late traffic is caught up with. After more, because no page
// was open or a laptop slept, it goes on from where it was.
const mostBehind = time.Second

// run advances the race with the clock until ctx ends.
func (r *race) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(r.advance())
		}
	}
}
