package distributed

import (
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
)

// calendarWindow is a fixedWindow whose windows are periods of a calendar. The
// script knows no calendar: a command carries the window of the client's time
// and the lengths of the windows before and after it, and the script selects the
// one that holds the server's time.
type calendarWindow struct {
	fixedWindow
	calendar *decide.Calendar
	clock    func() time.Time
}

func newCalendarWindow(s algo.Spec) (limit, error) {
	c, err := decide.NewCalendar(s.Rate.Period, s.Zone, s.StartDay)
	if err != nil {
		return nil, err
	}
	d, err := decide.NewCalendarWindow(microseconds(s.Rate), c, time.UnixMicro(0))
	if err != nil {
		return nil, err
	}
	w := window{s, s.Rate.Count, s.Rate.Period.Microseconds()}
	return &calendarWindow{fixedWindow{window: w, decide: d}, c, time.Now}, nil
}

// command returns the arguments of an operation on the window of now.
func (w *calendarWindow) command(op, n int64) remote.Args {
	begin, end := w.calendar.Period(w.clock())
	before, _ := w.calendar.Period(begin.Add(-1))
	_, after := w.calendar.Period(end)
	return remote.Args{op, end.Sub(begin).Microseconds(), w.quota, n,
		begin.UnixMicro(), begin.Sub(before).Microseconds(), after.Sub(end).Microseconds()}
}

// windowOf returns the window that the script selects at now; see fixedwindow.lua.
func windowOf(a []int64, now int64) (begin, long int64) {
	long, begin = a[1], a[4]
	before, after := a[5], a[6]
	switch {
	case begin-before <= now && now < begin:
		return begin - before, before
	case begin+long <= now && now < begin+long+after:
		return begin + long, after
	}
	return now - ((now-begin)%long+long)%long, long
}

func (w *calendarWindow) acquireArgs(_ string, n int64) remote.Args {
	return w.command(opAcquire, possible(n, w.quota))
}

func (w *calendarWindow) explain(a remote.Answer, n int64) (algo.Decision, algo.Handle) {
	word, voided := a.Reply[0], a.Reply[1]
	if a.Flag() == flagBanned {
		return whileBanned(w, n, word-a.Now), algo.Handle{}
	}
	begin, long := windowOf(a.Args, a.Now)
	spent := max(word-begin-long, 0)
	end := w.decide.Reset(0, a.Now)
	if debt := spent - long; debt > 0 {
		spent = w.decide.Reset(0, end) - end + debt
	}
	next, answer, quota := w.decide.Answer(end+spent, a.Now, n)
	c := w.decide.Charge(next, a.Now, n, 0)
	return decision(answer, quota), algo.Handle{N: c.N, At: c.At, State: [3]int64{begin + long, voided, long}}
}

// refundArgs refunds n units while their window lasts.
func (w *calendarWindow) refundArgs(h algo.Handle, n int64) remote.Args {
	end, long := h.State[0], h.State[2]
	if w.decide.Reset(0, end-1) != end || w.decide.Reset(0, end-long-1) != end-long {
		n = 0 // of another calendar
	}
	after := w.decide.Reset(0, end) - end
	return remote.Args{opRefund, max(long, 1), w.quota, min(n, h.N, 2*w.period), end, h.State[1], after}
}

func (w *calendarWindow) giveBackArgs(_ string, n int64) remote.Args {
	return w.command(opGiveBack, min(n, maxExact))
}

func (w *calendarWindow) forceArgs(_ string, _ algo.Handle, n int64) remote.Args {
	return w.command(opForce, min(n, 2*w.quota+1))
}

func (w *calendarWindow) resetArgs(string) remote.Args { return w.command(opReset, 0) }
