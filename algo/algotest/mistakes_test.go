package algotest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// mistake is a small change that makes a limiter wrong, and words that the failure has to contain.
type mistake struct {
	name  string
	plant func(l *plain)
	words string
}

// answers plants a change of each answer.
func answers(f func(d *algo.Decision, n int64)) func(l *plain) {
	return func(l *plain) {
		l.answer = func(d algo.Decision, n int64) algo.Decision { f(&d, n); return d }
	}
}

func charges(f func(d algo.Decision, n int64) int64) func(l *plain) {
	return func(l *plain) { l.charge = f }
}
func settles(f func(was, actual, free int64) int64) func(l *plain) {
	return func(l *plain) { l.settle = f }
}
func gives(f func(h algo.Handle, o algo.Outcome) int64) func(l *plain) {
	return func(l *plain) { l.back = f }
}

func describes(f func(d *algo.Description)) func(l *plain) {
	return func(l *plain) { l.about = func(d algo.Description) algo.Description { f(&d); return d } }
}

func denied(d *algo.Decision) bool { return !d.Allowed && d.Reason != algo.Never }

// both are mistakes in a limit over time and in one on requests in flight.
var both = []mistake{
	{"Peek charges", func(l *plain) { l.peekTakes = 1 }, "Peek changed"},
	{"Peek admits what Acquire denies", func(l *plain) {
		l.peeked = func(d algo.Decision, _ int64) algo.Decision { d.Allowed, d.Reason, d.RetryAfter = true, 0, 0; return d }
	}, "Peek has to give the answer of Acquire"},
	{"a denial charges", charges(func(_ algo.Decision, n int64) int64 { return min(n, 5) }), "a denial changed"},
	{"RetryAfter 0", answers(func(d *algo.Decision, _ int64) { d.RetryAfter = 0 }), "RetryAfter is"},
	{"no Reason", answers(func(d *algo.Decision, _ int64) { d.Reason = algo.Admitted }), "Reason says"},
	{"Remaining below 0", answers(func(d *algo.Decision, n int64) {
		if denied(d) {
			d.Remaining -= n
		}
	}), "Remaining is"},
	{"Remaining before the charge", answers(func(d *algo.Decision, n int64) {
		if d.Allowed {
			d.Remaining += n
		}
	}), "Remaining is"},
	{"Limit 0", answers(func(d *algo.Decision, _ int64) { d.Limit = 0 }), "Limit has to be"},
	{"cost ignored", charges(func(d algo.Decision, n int64) int64 {
		if d.Allowed {
			return min(n, 1)
		}
		return 0
	}), "charge n units"},
	{"cost 0 charges", charges(func(d algo.Decision, n int64) int64 {
		if d.Allowed {
			return max(n, 1)
		}
		return 0
	}), "cost of 0"},
	{"above the limit is no Never", answers(func(d *algo.Decision, _ int64) {
		if d.Reason == algo.Never {
			d.Reason, d.RetryAfter = algo.Quota, time.Second
		}
	}), "with the Reason Never"},
	{"Settle upwards ignored", settles(func(was, actual, _ int64) int64 { return min(actual-was, 0) }), "Settle upwards"},
	{"Settle upwards as far as it fits", settles(func(was, actual, free int64) int64 { return min(actual-was, max(free, 0)) }), "Settle upwards"},
	{"Settle downwards ignored", settles(func(was, actual, _ int64) int64 { return max(actual-was, 0) }), "Settle downwards"},
	{"Settle downwards gives all back", settles(func(was, actual, _ int64) int64 {
		if actual < was {
			return -was
		}
		return actual - was
	}), "Settle downwards"},
	{"refunds one unit", gives(func(h algo.Handle, o algo.Outcome) int64 { return min(h.N, int64(o.Result()/algo.Canceled)) }), "Release("},
	{"never gives back", gives(func(algo.Handle, algo.Outcome) int64 { return 0 }), "Release("},
	{"the lease of a denial gives back", func(l *plain) { l.late = true }, "FillLease"},
	{"one limit for all keys", func(l *plain) { l.key = func(string) string { return "" } }, "count each key by itself"},
	{"keys in lower case", func(l *plain) { l.key = strings.ToLower }, "count each key by itself"},
	{"an error keeps the charge", func(l *plain) {
		l.error = func(ctx context.Context, _ algo.Decision) error { return ctx.Err() }
	}, "returned an error"},
	{"a denial is an error", func(l *plain) {
		l.error = func(_ context.Context, d algo.Decision) error {
			if !d.Allowed {
				return errors.New("denied")
			}
			return nil
		}
	}, "denial is no error"},
	{"About with another quota", describes(func(d *algo.Description) { d.Quota++ }), "About: Quota has to be"},
	{"About with the other unit", describes(func(d *algo.Description) { d.Unit = algo.ConcurrentRequests - d.Unit }), "About: Unit has to be"},
	{"one too many", func(l *plain) { l.rate.Count++ }, "more than"},
	{"not safe for concurrent use", func(l *plain) { l.unsafe = true }, "concurrent"},
}

// overTime are mistakes in a limit over time.
var overTime = append([]mistake{
	{"RetryAfter too short", answers(func(d *algo.Decision, _ int64) {
		if denied(d) {
			d.RetryAfter -= time.Nanosecond
		}
	}), "RetryAfter is too short"},
	{"RetryAfter in whole seconds", answers(func(d *algo.Decision, _ int64) {
		if denied(d) {
			d.RetryAfter = d.RetryAfter.Truncate(time.Second) + time.Second
		}
	}), "RetryAfter is too long"},
	{"ResetAfter 0", answers(func(d *algo.Decision, _ int64) { d.ResetAfter = 0 }), "ResetAfter is"},
	{"ResetAfter too long", answers(func(d *algo.Decision, _ int64) { d.ResetAfter *= 2 }), "ResetAfter is too long"},
	{"NextAfter 0", answers(func(d *algo.Decision, _ int64) { d.NextAfter = 0 }), "NextAfter is"},
	{"Delay of what fits", answers(func(d *algo.Decision, _ int64) { d.Delay = time.Second }), "Delay is"},
	{"refunds twice", gives(func(h algo.Handle, o algo.Outcome) int64 {
		if o.Result() == algo.Canceled {
			return 2 * h.N
		}
		return 0
	}), "has to give back the"},
	{"any outcome gives back", gives(func(h algo.Handle, _ algo.Outcome) int64 { return h.N }), "only Canceled"},
	{"Canceled with a flag keeps", gives(func(h algo.Handle, o algo.Outcome) int64 {
		if o == algo.Canceled {
			return h.N
		}
		return 0
	}), "Release(canceled, untimed)"},
	{"gives back what no longer weighs", func(l *plain) { l.mints = true }, "no longer weighs"},
	{"a clock that does not move", func(l *plain) { l.now = func() time.Duration { return 0 } }, "read the clock"},
	{"a clock of whole seconds", func(l *plain) {
		now := l.now
		l.now = func() time.Duration { return now().Truncate(time.Second) }
	}, "read the clock"},
	{"About with another window", describes(func(d *algo.Description) { d.Window *= 60 }), "About: Window"},
	{"About with another rate", describes(func(d *algo.Description) { d.Rate.Period *= 60 }), "About: Rate"},
}, both...)

// inFlight are mistakes in a limit on requests in flight.
var inFlight = append([]mistake{
	{"frees two", gives(func(h algo.Handle, _ algo.Outcome) int64 { return 2 * h.N }), "Release("},
	{"frees one", gives(func(h algo.Handle, _ algo.Outcome) int64 { return min(h.N, 1) }), "Release("},
	{"frees after success only", gives(func(h algo.Handle, o algo.Outcome) int64 {
		if o == algo.Succeeded {
			return h.N
		}
		return 0
	}), "Release(failed)"},
	{"Settle leaves what Release frees", settles(func(int64, int64, int64) int64 { return 0 }), "Settle"},
	{"About without NeedsRelease", describes(func(d *algo.Description) { d.NeedsRelease = false }), "About: NeedsRelease"},
}, both...)

const mistaken = "SLUICE_TEST_MISTAKEN"

// TestMistaken fails for each mistake, in a process of its own.
func TestMistaken(t *testing.T) {
	if os.Getenv(mistaken) == "" {
		t.Skip("TestMistakesAreNamed runs it")
	}
	for kind, mistakes := range map[string][]mistake{"over time": overTime, "in flight": inFlight} {
		for _, m := range mistakes {
			t.Run(kind+", "+m.name, func(t *testing.T) { conform(t, kind == "in flight", m.plant) })
		}
	}
}

// TestMistakesAreNamed: the kit finds each mistake, and its failure says what to do about it.
func TestMistakesAreNamed(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestMistaken$", "-test.short", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), mistaken+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "the kit found none of the mistakes")
	failures := strings.Split(string(out), "\n    --- FAIL: TestMistaken/")[1:]
	for kind, mistakes := range map[string][]mistake{"over time": overTime, "in flight": inFlight} {
		for _, m := range mistakes {
			t.Run(kind+", "+m.name, func(t *testing.T) {
				name := strings.ReplaceAll(kind+", "+m.name, " ", "_") + " ("
				i := slices.IndexFunc(failures, func(f string) bool { return strings.HasPrefix(f, name) })
				require.GreaterOrEqual(t, i, 0, "the kit missed it")
				_, message, _ := strings.Cut(failures[i], "Messages:")
				require.Contains(t, message, m.words, failures[i])
			})
		}
	}
}
