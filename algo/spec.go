package algo

import "time"

// Spec describes a limit: its algorithm, its rate and its options. Constructors, options,
// configuration files and running limiters all use it; see [Parse] for its text form. The zero
// value of a field means the default.
//
// These are the algorithms and the options of each. All take keys and deny-new as well.
//
//	token-bucket       burst N, wait D
//	leaky-bucket       burst N
//	pacer              slack N, wait D, queue N
//	nginx              burst N, delay N, nodelay
//	smooth-bursty      burst N, wait D
//	smooth-warming-up  warmup D, cold F, wait D
//	fixed-window       zone NAME, start N; or offset D, aligned T, spread
//	sliding-window     cells N
//	sliding-log
//	strict             burst N
//
// JSON has an object or a string in the text form. The rate, durations and times are strings in the
// object:
//
//	{"rate": "100/min", "burst": 20, "wait": "500ms"}
//	"100/min burst 20 wait 500ms"
type Spec struct {
	Algorithm string        `json:"algorithm,omitzero"` // default: token-bucket
	Rate      Rate          `json:"rate"`
	Burst     int64         `json:"burst,omitzero"` // see [Burst]
	MaxWait   time.Duration `json:"wait,omitzero"`  // see [MaxWait]
	// MaxQueue bounds the units that wait in a pacer. The text "queue 0" denies whatever cannot start
	// at once.
	MaxQueue int64 `json:"queue,omitzero"`
	Slack    int64 `json:"slack,omitzero"` // see [Slack]
	// DelayAfter is the delay parameter of nginx: how many units in excess of the rate
	// start at once. The default 0 delays all of them; Burst or more delays none.
	DelayAfter int64 `json:"delay,omitzero"`
	// NoDelay is the nodelay parameter of nginx: units in excess of the rate start at once,
	// up to Burst.
	NoDelay bool `json:"nodelay,omitzero"`
	// Warmup is the time of smooth-warming-up from cold to the rate, 0 to half a year.
	Warmup time.Duration `json:"warmup,omitzero"`
	// ColdFactor is how many times as much a cold permit of smooth-warming-up costs: more than 1, at
	// most 1e6. The default is 3.
	ColdFactor float64 `json:"cold,omitzero"`
	Cells      int64   `json:"cells,omitzero"` // see [Cells]
	// Offset moves the edges of a fixed window, 0 or more and taken modulo the period. Without
	// AlignedTo the edges are at Offset, Offset + period, ... after the limiter was made; limiters or
	// instances with different offsets refill at different instants.
	Offset time.Duration `json:"offset,omitzero"`
	// AlignedTo is an edge of a fixed window, past or future, within 291 years; the others
	// are whole periods away from it. Windows are lengths of time, not dates: when daylight
	// saving begins or ends a location's midnight moves by an hour and the windows do not.
	// [Zone] follows the dates, and the system's clock when it is set;
	// AlignedTo does not.
	AlignedTo time.Time `json:"aligned,omitzero"`
	Zone      string    `json:"zone,omitzero"`  // see [Zone]
	StartDay  int64     `json:"start,omitzero"` // see [StartDay]
	// Spread gives each key of a fixed window edges of its own, at one of 1024 places in the period by
	// a hash of the key (a secret one in this process, one for all instances on Redis), so that keys
	// do not refill at once. The empty key does not move. It cannot be combined with AlignedTo.
	Spread  bool  `json:"spread,omitzero"`
	MaxKeys int64 `json:"keys,omitzero"`     // see [MaxKeys]
	DenyNew bool  `json:"deny-new,omitzero"` // see [DenyNew]

	zeros uint32            // options given as zero: bit i is fields[i]
	clock *func() time.Time // see [Clock]; a pointer, so that Specs can be compared
}

// fields lists the options of a Spec, in the order in which String writes them.
var fields = []field{
	fieldOf("burst", "Burst", zeroCounts, numbers, func(s *Spec) *int64 { return &s.Burst }),
	fieldOf("wait", "MaxWait", zeroCounts, durations, func(s *Spec) *time.Duration { return &s.MaxWait }),
	fieldOf("queue", "MaxQueue", zeroCounts, numbers, func(s *Spec) *int64 { return &s.MaxQueue }),
	fieldOf("slack", "Slack", 0, numbers, func(s *Spec) *int64 { return &s.Slack }),
	fieldOf("delay", "DelayAfter", zeroCounts, numbers, func(s *Spec) *int64 { return &s.DelayAfter }),
	fieldOf("nodelay", "NoDelay", noValue, flags, func(s *Spec) *bool { return &s.NoDelay }),
	fieldOf("warmup", "Warmup", permanent, durations, func(s *Spec) *time.Duration { return &s.Warmup }),
	fieldOf("cold", "ColdFactor", zeroCounts|permanent, floats, func(s *Spec) *float64 { return &s.ColdFactor }),
	fieldOf("cells", "Cells", zeroCounts|permanent, numbers, func(s *Spec) *int64 { return &s.Cells }),
	fieldOf("offset", "Offset", permanent, durations, func(s *Spec) *time.Duration { return &s.Offset }),
	fieldOf("aligned", "AlignedTo", permanent, times, func(s *Spec) *time.Time { return &s.AlignedTo }),
	fieldOf("zone", "Zone", zeroCounts|permanent, names, func(s *Spec) *string { return &s.Zone }),
	fieldOf("start", "StartDay", zeroCounts|permanent, numbers, func(s *Spec) *int64 { return &s.StartDay }),
	fieldOf("spread", "Spread", permanent|noValue, flags, func(s *Spec) *bool { return &s.Spread }),
	fieldOf("keys", "MaxKeys", zeroCounts|permanent, numbers, func(s *Spec) *int64 { return &s.MaxKeys }),
	fieldOf("deny-new", "DenyNew", permanent|noValue, flags, func(s *Spec) *bool { return &s.DenyNew }),
}

// Given reports whether option, a name in the text form, was set: to a value other than zero, or to
// zero by an [Option], by [Parse] or in JSON.
func (s Spec) Given(option string) bool {
	for i, f := range fields {
		if f.word == option {
			return s.given(i)
		}
	}
	return false
}

func (s *Spec) given(i int) bool { return s.zeros>>i&1 == 1 || fields[i].text(s) != "" }

// setGiven records that field i was given, even as zero.
func (s *Spec) setGiven(i int) {
	s.zeros &^= 1 << i
	if f := fields[i]; f.is(zeroCounts) && f.text(s) == "" {
		s.zeros |= 1 << i
	}
}

// value returns the value of field i, for messages and comparisons.
func (s *Spec) value(i int) string {
	switch v := fields[i].text(s); {
	case v != "":
		return v
	case s.given(i):
		return "0"
	}
	return "the default"
}

const defaultAlgorithm = "token-bucket"

// each calls visit for each given option.
func (s *Spec) each(visit func(f *field, value string)) {
	for i := range fields {
		f := &fields[i]
		if v := f.text(s); v != "" {
			visit(f, v)
		} else if s.given(i) {
			visit(f, "0")
		}
	}
}
