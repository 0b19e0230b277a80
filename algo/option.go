package algo

import (
	"time"

	"github.com/sluice-go/sluice/internal/option"
)

// Option sets one option of a limit: it writes to the limit's [Spec]. An option
// that a constructor does not take, or that is given twice, is an error that
// names both.
type Option struct {
	name  string
	apply func(*Spec)
}

// String returns the option's name, such as Burst.
func (o Option) String() string { return o.name }

// A new option needs a function here, a field of Spec and a row of fields (spec.go), and its name
// in the kind of each algorithm that takes it (tokenbucket.go), beside the code that reads the
// field.

// Burst sets the most units that fit at once, 1 or more; 0 or more for
// nginx and smooth-bursty. The default is the rate's count, unless the
// constructor states another.
func Burst(n int64) Option {
	return Option{"Burst", func(s *Spec) { s.Burst = n }}
}

// MaxWait lets a limiter admit requests that do not fit yet with a Delay of at most d, 0 or more.
// The default 0 denies them; [NewPacer] has its own default. Forever means the longest delay: a
// year, less the time in which the burst fills.
func MaxWait(d time.Duration) Option {
	return Option{"MaxWait", func(s *Spec) { s.MaxWait = d }}
}

// Slack lets [NewPacer] start n units, 0 or more, ahead of the even spacing
// after a time with less to do. The default is 0.
func Slack(n int64) Option {
	return Option{"Slack", func(s *Spec) { s.Slack = n }}
}

// Zone makes the windows of [NewFixedWindow] periods of the calendar in a time zone of the tz database, such as
// Europe/Berlin or UTC; Local is an error, because instances may differ. The period of the rate must be 24
// hours, [Week] (ISO 8601: from Monday), [Month] or [Quarter] (from January). [StartDay] sets another first
// day.
//
// A window begins at midnight: at the first instant after it if the clocks skip midnight, at the first of two
// if they show it twice. A day has 23 or 25 hours when daylight saving begins or ends. The quota is at most
// half of the period's nanoseconds.
//
// The process must have the database: install it or import time/tzdata. Zone cannot be combined with the fields
// Offset, AlignedTo and Spread of [Spec]. The windows follow the system's clock within a second when it is set,
// and after a suspension of the machine. If it steps back, its window continues with the keys' spent units, and
// a key gets at most one more quota for each step.
func Zone(name string) Option {
	return Option{"Zone", func(s *Spec) { s.Zone = name }}
}

// StartDay sets the first day of the windows that [Zone] makes: of a week, 1 for Monday to 7 for
// Sunday; of a month or quarter, 1 to 31, or the last day of a shorter month. So 31 is the last day
// of each month, and 30 renews a subscription on February 28 or 29 and on March 30. The default is
// 1.
func StartDay(n int) Option {
	return Option{"StartDay", func(s *Spec) { s.StartDay = int64(n) }}
}

// Cells makes [NewSlidingWindow] count in n cells a period, 1 to 1024, plus one: then no window
// holds more than the quota. Units come back at most one n-th of the period late, and each cell
// takes 8 bytes a key.
func Cells(n int) Option {
	return Option{"Cells", func(s *Spec) { s.Cells = int64(n) }}
}

// MaxKeys sets the capacity of the table of keys, 1 to 2^31-1 (default 1048576): room for that many
// keys with debt (about one in a million finds none), and for up to 2.7 times as many, at least 16. A
// key takes a slot while it has debt: at most until its bucket has filled after its last request.
//
// In a full table a new key replaces the one with the least debt of 16, which starts afresh;
// docs/guides/security.md describes a flood of keys. [DenyNew] denies new keys instead.
//
// The table takes 19 to 38 bytes a key, 37 MiB at most by default, grows with the keys by about 9 kB at
// a time from the ninth key on, and does not shrink. Sliding windows and logs take more.
func MaxKeys(n int) Option {
	return Option{"MaxKeys", func(s *Spec) { s.MaxKeys = int64(n) }}
}

// DenyNew denies new keys while the table is full of keys with debt: a client that can invent keys
// can lock others out. By default a new key replaces another one; see [MaxKeys].
func DenyNew() Option {
	return Option{"DenyNew", func(s *Spec) { s.DenyNew = true }}
}

// Clock makes the limiter read the time from now instead of the system's clock, for tests that advance it by
// hand. Every constructor takes it. The text form omits it, and a change of the limit keeps it.
//
// now must be safe for concurrent use and fast, and must not call the limiter or panic. [time.Time.Sub]
// computes elapsed time, by monotonic readings if there are any. A reading before the latest one counts as the
// latest, so that no second is spent twice; a step forward of more than a year counts as a year. The clock
// counts for 4.5 years from the constructor's call. Decisions take longer with it.
//
// [Wait], [WaitAll], [Sleep] and the adapters that wait sleep in real time, and ask again at least once a
// second until admitted. testing/synctest needs no option.
func Clock(now func() time.Time) Option {
	if now == nil {
		panic("algo: Clock: the function is nil")
	}
	return Option{clockOption, func(s *Spec) { s.clock = &now }}
}

const clockOption = "Clock"

// Clock returns the function that the option [Clock] has set, or nil.
func (s Spec) Clock() func() time.Time {
	if s.clock == nil {
		return nil
	}
	return *s.clock
}

func (o Option) split() (string, func(*Spec) error) {
	if o.apply == nil {
		return "", nil
	}
	return o.name, option.Sets(func(s *Spec) { s.write(o) })
}

// write sets one option.
func (s *Spec) write(o Option) {
	o.apply(s)
	for i, f := range fields {
		if f.option == o.name {
			s.setGiven(i)
		}
	}
}

// Options returns the options of s that were given, for constructors that take
// a [Rate] and Options.
func (s Spec) Options() (opts []Option) {
	for i, f := range fields {
		if s.given(i) {
			opts = append(opts, Option{f.option, f.of(&s)})
		}
	}
	if s.clock != nil {
		clock := s.clock
		opts = append(opts, Option{clockOption, func(to *Spec) { to.clock = clock }})
	}
	return opts
}
