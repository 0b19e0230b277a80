package distributed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

const (
	partnerRate, partnerBurst = 90, 18
	partnerFleet, partnerDead = 9, 3
)

// partner is a server 20 to 40 ms away, and the calls that it gets.
type partner struct {
	limit algo.Limiter
	mu    sync.Mutex
	sent  []virtualEvent
	ok    []time.Time
}

// call sends one call and passes the answer on.
func (p *partner) call(l *Learned, rnd *rand.Rand) error {
	sent := time.Now()
	p.mu.Lock()
	p.sent = append(p.sent, virtualEvent{sent, 1})
	p.mu.Unlock()
	there := 10*time.Millisecond + time.Duration(rnd.Int64N(int64(10*time.Millisecond)))
	time.Sleep(there)
	lease, err := p.limit.Acquire(context.Background(), "", 1)
	if err != nil {
		return err
	}
	a := learn.Answer{Sent: sent, Units: 1, Denied: !lease.Allowed}
	if a.Denied {
		a.Wait = time.Second
	} else {
		p.mu.Lock()
		p.ok = append(p.ok, time.Now())
		p.mu.Unlock()
	}
	time.Sleep(there)
	l.Answered("", a)
	return nil
}

// used is the part of the limit that was used between two instants.
func (p *partner) used(from, to time.Time) float64 {
	n := 0
	for _, at := range p.ok {
		if at.After(from) && !at.After(to) {
			n++
		}
	}
	return float64(n) / (partnerRate * to.Sub(from).Seconds())
}

// TestW3_LearnedThroughAnOutageAndDeaths: nine instances share a learned limit on Redis. Redis is
// away for a minute, in which three of them die. Together they send at most B + max(B, N) + 2*R*w,
// and those that are left take the parts of the dead: on Redis at once, without it by what each
// learns, in most runs: they learn apart, so that a search by one costs all.
func TestW3_LearnedThroughAnOutageAndDeaths(t *testing.T) {
	var peak float64
	seeds := cases.Count(2, 40)
	least, mean := map[string]float64{}, map[string]float64{}
	for seed := range uint64(seeds) {
		freshRequests(t)
		synctest.Test(t, func(t *testing.T) {
			p := &partner{limit: algo.Must(algo.NewTokenBucket(algo.PerSecond(partnerRate), algo.Burst(partnerBurst)))}
			begun := time.Now()
			p.through(t, seed)
			beyond := mostBeyond(p.sent, 2*partnerRate)
			peak = max(peak, beyond)
			require.LessOrEqual(t, beyond, float64(partnerBurst+max(partnerBurst, partnerFleet)), "W3, seed %d", seed)
			for name, stage := range map[string][2]int{"healthy": {30, 60}, "outage": {60, 75}, "three dead": {90, 120}, "Redis back, three dead": {150, 180}} {
				part := p.used(begun.Add(time.Duration(stage[0])*time.Second), begun.Add(time.Duration(stage[1])*time.Second))
				if was, ok := least[name]; !ok || part < was {
					least[name] = part
				}
				mean[name] += part / float64(seeds)
			}
		})
	}
	t.Logf("W3: %d seeds: at most %.1f of %d units beyond 2*R*w; parts of the limit that were used, least %v, mean %v", seeds, peak, 2*partnerBurst, least, mean)
	apart := "three dead"
	if require.GreaterOrEqual(t, mean[apart], .5); cases.Long() {
		require.Greater(t, mean[apart], .85, "without the parts of the dead it would be .67")
	}
	delete(least, apart)
	for name, part := range least {
		require.GreaterOrEqual(t, part, .8, name)
	}
}

// through lets four workers of each instance call: a minute, a minute without Redis in which three
// instances die, and another minute.
func (p *partner) through(t *testing.T, seed uint64) {
	server := newVirtualServer(perMicros(1, time.Hour), 1)
	var workers sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	dying, kill := context.WithCancel(ctx)
	failed := make(chan error, 4*partnerFleet)
	all := make([]int, partnerFleet)
	for i := range partnerFleet {
		all[i] = i
		transport := &virtualTransport{server: server, instance: i, sent: func() {}}
		store, err := NewWithTransport(transport, WithLogger(slog.New(slog.DiscardHandler)), WithTimeout(virtualTimeout), ProbeEvery(virtualProbe))
		require.NoError(t, err)
		defer func() { require.NoError(t, store.Close()) }()
		l, err := store.Learned("partner", algo.PerSecond(10))
		require.NoError(t, err)
		alive := ctx
		if i < partnerDead {
			alive = dying
		}
		for worker := range 4 {
			rnd := rand.New(rand.NewPCG(seed, uint64(4*i+worker)))
			workers.Go(func() {
				for {
					_, err := algo.Wait(alive, l, "", 1)
					if err == nil {
						err = p.call(l, rnd)
					}
					if err != nil {
						failed <- err
						return
					}
				}
			})
		}
	}
	time.Sleep(time.Minute)
	server.set(all, down)
	time.Sleep(15 * time.Second)
	kill()
	server.set(all[:partnerDead], down) // their heartbeats end
	time.Sleep(45 * time.Second)
	server.set(all[partnerDead:], fair)
	time.Sleep(time.Minute)
	stop()
	workers.Wait()
	close(failed)
	for err := range failed {
		if !errors.Is(err, context.Canceled) {
			t.Error(fmt.Errorf("seed %d: %w", seed, err))
		}
	}
}
