package distributed

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// civilCount is one key of a calendar window, counted by the dates that the clocks of its zone
// have shown, without the code of the windows.
type civilCount struct {
	limit  *calendarWindow
	zone   *time.Location
	spec   algo.Spec
	quota  int64
	end    time.Time // of the period of spent
	spent  int64
	debt   int64 // of the period after it
	voided int64
	leases []algo.Handle
	denied *civilDenial
}

// civilDenial is the entry that a deny cache would keep.
type civilDenial struct{ answer remote.Answer }

// number of the period of the date that the clocks show.
func (c *civilCount) number(t time.Time) int {
	y, m, d := t.In(c.zone).Date()
	days := int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
	months, start := y*12+int(m)-1, max(int(c.spec.StartDay), 1)
	switch c.spec.Rate.Period {
	case 24 * time.Hour:
		return days
	case algo.Week:
		return (days + 3 - (start - 1) + 7000) / 7 // day 0 was a Thursday
	case algo.Quarter:
		if m := months % 3; m == 0 && d < min(start, time.Date(y, time.Month(months%12)+2, 0, 0, 0, 0, 0, time.UTC).Day()) {
			return months/3 - 1
		}
		return months / 3
	}
	if d < min(start, time.Date(y, m+1, 0, 0, 0, 0, 0, time.UTC).Day()) {
		return months - 1
	}
	return months
}

// period is the largest number up to t: clocks that are set back past midnight begin nothing.
func (c *civilCount) period(t time.Time) int {
	n := c.number(t)
	for at := t; t.Sub(at) < 48*time.Hour; {
		from, _ := at.In(c.zone).ZoneBounds()
		if from.IsZero() {
			break
		}
		at = from.Add(-time.Second)
		if t.Sub(at) < 48*time.Hour {
			n = max(n, c.number(at))
		}
	}
	return n
}

// until is the end of the period that holds t. Edges lie on whole seconds.
func (c *civilCount) until(t time.Time) time.Time {
	from, now := t.Truncate(time.Second), c.period(t)
	s := sort.Search(100*86400, func(s int) bool { return c.period(from.Add(time.Duration(s)*time.Second)) > now })
	return from.Add(time.Duration(s) * time.Second)
}

func (c *civilCount) advance(t time.Time) {
	if t.Before(c.end) {
		return
	}
	owed := int64(0)
	if !c.end.IsZero() && c.period(t) == c.period(c.end) {
		owed = c.debt
	}
	c.spent, c.debt, c.voided, c.leases = owed, 0, 0, nil
	c.end = c.until(t)
}

func (c *civilCount) fits(n int64) bool { return n == 0 || c.debt == 0 && c.spent+n <= c.quota }

func (c *civilCount) force(n int64) {
	over := max(c.spent+n-c.quota, 0)
	c.spent = min(c.spent+n, c.quota)
	if c.debt += over; c.debt > c.quota {
		c.debt, c.leases = c.quota, nil
		c.voided++
	}
}

func (c *civilCount) refund(n int64) {
	owed := min(n, c.debt)
	c.debt -= owed
	c.spent = max(c.spent-(n-owed), 0)
}

// retryAfter is how long n units that do not fit have to wait.
func (c *civilCount) retryAfter(t time.Time, n int64) time.Duration {
	if c.debt > 0 && c.debt+n > c.quota {
		return c.until(c.end).Sub(t)
	}
	return c.end.Sub(t)
}

var civilZones = strings.Fields("Europe/Berlin Australia/Lord_Howe America/St_Johns America/Sao_Paulo Pacific/Apia Pacific/Kwajalein " +
	"Asia/Beirut Africa/Cairo Asia/Kathmandu America/Havana Asia/Gaza Antarctica/Troll Pacific/Auckland UTC")

// civilEras have the rare transitions: Kwajalein and Apia skip a date, Sao_Paulo midnights.
var civilEras = []time.Time{
	time.Date(1993, 7, 20, 0, 0, 0, 0, time.UTC), time.Date(2011, 11, 20, 0, 0, 0, 0, time.UTC),
	time.Date(2007, 9, 1, 0, 0, 0, 0, time.UTC), time.Date(2024, 1, 28, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
}

func newCivilCount(t *testing.T, rnd *rand.Rand) *civilCount {
	spec := algo.Spec{Algorithm: "fixed-window", Zone: civilZones[rnd.IntN(len(civilZones))],
		Rate: algo.Per(1+rnd.Int64N(9), []time.Duration{24 * time.Hour, 24 * time.Hour, algo.Week, algo.Month, algo.Quarter}[rnd.IntN(5)])}
	if spec.Rate.Period > algo.Week {
		spec.StartDay = rnd.Int64N(32)
	} else if spec.Rate.Period == algo.Week {
		spec.StartDay = rnd.Int64N(8)
	}
	made, err := newFixedWindow(spec)
	require.NoError(t, err)
	zone, err := time.LoadLocation(spec.Zone)
	require.NoError(t, err)
	return &civilCount{limit: made.(*calendarWindow), zone: zone, spec: spec, quota: spec.Rate.Count}
}

// civilRig runs the windows of several limits on one server whose clock the test sets.
type civilRig struct {
	t      *testing.T
	rnd    *rand.Rand
	client *redis.Client
	script *remote.Script
	id     int
	counts []*civilCount
	now    time.Time

	charged, denials, proofs, edges int
}

// TestW2_CalendarGroupsAgainstDates: windows of several zones and lengths, alone and in groups,
// admit exactly the quota in each period of the dates, for clients whose clocks differ from the
// server's by up to a window, at the microseconds around each edge, with debts, refunds and resets;
// RetryAfter is the edge, and a denial that is known proves nothing beyond it.
func TestW2_CalendarGroupsAgainstDates(t *testing.T) {
	script := atInstant(t)
	const life = "math.max(math.ceil(us / 1000), 1)"
	source := strings.Replace(script.Source(), life, life+" + 3600000", 1) // the clock of the test does not advance
	require.NotEqual(t, script.Source(), source)
	r := &civilRig{t: t, rnd: rand.New(rand.NewPCG(31, 32)), client: redistest.Start(t).Client(),
		script: remote.NewScript(script.Name, text(source), script.Args, script.Replies)}
	for range cases.Count(10, 1500) {
		r.id++
		r.counts = nil
		for range 4 {
			r.counts = append(r.counts, newCivilCount(t, r.rnd))
		}
		r.now = civilEras[r.rnd.IntN(len(civilEras))]
		for range 60 {
			r.step()
		}
	}
	require.Positive(t, r.proofs)
	t.Logf("W2: %d groups charged, %d denied, %d of them proven before, %d steps at edges", r.charged, r.denials, r.proofs, r.edges)
}

func (r *civilRig) step() {
	c := r.counts[r.rnd.IntN(len(r.counts))]
	switch r.rnd.IntN(4) {
	case 0:
		r.edges++
		r.now = c.until(r.now).Add([]time.Duration{-time.Second, -time.Microsecond, 0, time.Microsecond, time.Second}[r.rnd.IntN(5)])
	case 1:
		r.now = r.now.Add(time.Duration(r.rnd.Int64N(int64(40 * time.Hour)))).Truncate(time.Microsecond)
	}
	require.NoError(r.t, r.client.MSet(r.t.Context(), "sec", r.now.Unix(), "usec", r.now.Nanosecond()/1000).Err())
	for _, c := range r.counts {
		c.advance(r.now)
		begin, end := c.limit.calendar.Period(r.now)
		before, _ := c.limit.calendar.Period(begin.Add(-1))
		_, after := c.limit.calendar.Period(end)
		clock := []time.Time{r.now, r.now.Add(-time.Second), r.now.Add(time.Second), r.now.Add(time.Microsecond),
			begin.Add(-1), end, before, after.Add(-1)}[r.rnd.IntN(8)]
		c.limit.clock = func() time.Time { return clock }
	}
	switch op := r.rnd.IntN(10); {
	case op == 0:
		n := r.rnd.Int64N(2 * c.quota)
		c.force(n)
		r.run(c, c.limit.forceArgs("k", algo.Handle{}, n))
	case op == 1 && len(c.leases) > 0:
		h := &c.leases[r.rnd.IntN(len(c.leases))]
		n := r.rnd.Int64N(h.N + 1)
		r.run(c, c.limit.refundArgs(*h, n))
		c.refund(n)
		h.N -= n
		c.denied = nil
	case op == 2 && r.rnd.IntN(3) == 0:
		r.run(c, c.limit.resetArgs("k"))
		if c.spent > 0 || c.voided > 0 {
			c.voided++
		}
		c.spent, c.debt, c.leases, c.denied = 0, 0, nil, nil
	default:
		r.acquire()
	}
}

func (r *civilRig) key(c *civilCount) string {
	for i := range r.counts {
		if r.counts[i] == c {
			return fmt.Sprint("k", r.id, ".", i)
		}
	}
	return ""
}

func (r *civilRig) run(c *civilCount, a remote.Args) []int64 {
	return runScript(r.t, r.client, remote.NewRequest(r.script, r.key(c), a))
}

// acquire asks for a group, and compares each part.
func (r *civilRig) acquire() {
	g := &group{op: []int64{opAcquireAll, opAcquireAll, opPeekAll}[r.rnd.IntN(3)]}
	var of []*civilCount
	sum, all := map[*civilCount]int64{}, true
	var fits []bool
	for range 1 + r.rnd.IntN(4) {
		c := r.counts[r.rnd.IntN(len(r.counts))]
		p := groupPart{key: r.key(c), limit: c.limit}
		p.N = min(r.rnd.Int64N(4), c.quota)
		g.twice = g.twice || sum[c] > 0
		of, g.parts = append(of, c), append(g.parts, p)
		sum[c] += p.N
		fits = append(fits, p.N == 0 || c.fits(sum[c]))
		all = all && fits[len(fits)-1]
	}
	request := g.request()
	request.Script = r.script
	reply := runScript(r.t, r.client, request)
	request.Now = reply[0]
	copy(request.Reply, reply[1:])
	decisions, handles, charged := g.explain(request)
	require.Equal(r.t, all, charged)
	require.Equal(r.t, r.now.UnixMicro(), reply[0])
	seen := map[*civilCount]int64{}
	for i, c := range of {
		seen[c] += g.parts[i].N
		r.check(c, request.Answer(i), &decisions[i], g.parts[i].N, seen[c], fits[i])
		if !fits[i] && !g.twice {
			c.denied = &civilDenial{remote.Answer{Now: reply[0], Args: append([]int64(nil), request.Answer(i).Args...), Reply: append([]int64(nil), request.Answer(i).Reply...)}}
		}
	}
	if !all || g.op != opAcquireAll {
		return
	}
	r.charged++
	for i, c := range of {
		c.force(g.parts[i].N)
		if n := g.parts[i].N; n > 0 {
			c.leases = append(c.leases, handles[i])
		}
	}
}

func (r *civilRig) check(c *civilCount, a remote.Answer, d *algo.Decision, n, sum int64, fits bool) {
	where := fmt.Sprintf("%v at %v: %d of %+v", c.spec, r.now.In(c.zone), n, c)
	require.Zero(r.t, a.Reply[2]&remote.FlagMixed, where)
	require.Equal(r.t, fits, d.Allowed, where)
	if d.ResetAfter > 0 {
		require.Equal(r.t, c.retryAfter(r.now, c.quota), d.ResetAfter, where)
	}
	if !fits && n > 0 && sum <= c.quota {
		r.denials++
		require.Equal(r.t, c.retryAfter(r.now, sum), d.RetryAfter, where)
	}
	if c.denied != nil && n > 0 && sum == n {
		was, _ := c.limit.explain(c.denied.answer, n)
		if !was.Allowed && r.now.UnixMicro() < c.denied.answer.Now+was.RetryAfter.Microseconds() {
			r.proofs++
			require.False(r.t, d.Allowed, "it was proven: %s", where)
		}
	}
}
