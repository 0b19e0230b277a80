package decide

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

var providers = []struct {
	name string
	make func() provider
}{
	{"bucket", func() provider { return &bucket{rate: 30, burst: 6, tokens: 6} }},
	{"fixed window", func() provider { return &fixedServer{rate: 30} }},
	{"sliding window", func() provider { return &sliding{rate: 30} }},
}

// What providers ask for in place of the time after which a call is accepted, and what is
// used at least and denied at most in the long run.
var tells = []struct {
	name         string
	wait         func(time.Duration) time.Duration
	used, denied float64
}{
	{"honest", func(d time.Duration) time.Duration { return d }, .73, .06},
	{"seconds", func(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }, .83, .05},
	{"none", func(time.Duration) time.Duration { return 0 }, .55, .09},
	{"2 s", func(time.Duration) time.Duration { return 2 * time.Second }, .65, .035},
	{"a tenth", func(d time.Duration) time.Duration { return d / 10 }, .55, .06},
	{"ten times", func(d time.Duration) time.Duration { return 10 * d }, .05, .2},
}

// phase is the time from 30 s to 150 s after a change.
type phase struct {
	name         string
	used, denied float64 // used of what is allowed, denied of the calls
}

// history is an unknown provider whose rate changes by ten up and down, of which a stranger
// takes half, with n clients, of which one is killed.
func history(kind, tell, n int, seed uint64) (phases []phase) {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 1)), p: providers[kind].make(), tells: tells[tell].wait}
	dead := make([]bool, n)
	for i := range n {
		m := NewLearner(1)
		w.sender(&m, &dead[i])
	}
	steady := func(name string, rate float64) {
		w.run(w.now + 30*time.Second)
		w.ok, w.no = 0, 0
		w.run(w.now + 120*time.Second)
		phases = append(phases, phase{name, float64(w.ok) / 120 / rate, float64(w.no) / float64(max(w.ok+w.no, 1))})
	}
	steady("unknown", 30)
	w.p.set(300)
	steady("x 10", 300)
	w.p.set(30)
	steady("/ 10", 30)
	if n > 1 {
		dead[0] = true
		steady("one killed", 30)
	}
	gone := false
	w.stranger(15, &gone)
	steady("a stranger", 15)
	gone = true
	steady("alone again", 30)
	return phases
}

// TestUnknownProviders prints what is used of what a provider allows, in the long run. One client of an
// honest bucket uses .99 on average, .9 at least, and is denied at most 1 % of its calls.
func TestUnknownProviders(t *testing.T) {
	seeds := uint64(1)
	if cases.Long() {
		seeds = 20
	}
	for k, kind := range providers {
		for i, tell := range tells {
			for _, n := range []int{1, 8} {
				for seed := range seeds {
					line := fmt.Sprintf("%-14s %-9s %d", kind.name, tell.name, n)
					for _, p := range history(k, i, n, seed+1) {
						line += fmt.Sprintf(" | %s %.2f %.1f%%", p.name, p.used, 100*p.denied)
						least, most := tell.used, tell.denied
						if k == 0 && i == 0 && n == 1 {
							least, most = .9, .0105
						}
						require.GreaterOrEqual(t, p.used, least, line)
						require.LessOrEqual(t, p.denied, most, line)
					}
					t.Log(line)
				}
			}
		}
	}
}
