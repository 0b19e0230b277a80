package algo

import (
	"fmt"
	"strings"
	"time"
)

// Spec describes a limit: its algorithm, its rate and its options. Constructors,
// options, configuration files and running limiters all use this one
// description; see [Parse] for its text form. The zero value of a field means
// the default.
//
// These are the algorithms and the options of each. All take keys and deny-new
// as well.
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
// JSON has an object or a string in the text form. The rate, durations and
// times are strings in the object:
//
//	{"rate": "100/min", "burst": 20, "wait": "500ms"}
//	"100/min burst 20 wait 500ms"
type Spec struct {
	Algorithm  string        `json:"algorithm,omitzero"` // default: token-bucket
	Rate       Rate          `json:"rate"`
	Burst      int64         `json:"burst,omitzero"`    // see [Burst]
	MaxWait    time.Duration `json:"wait,omitzero"`     // see [MaxWait]
	MaxQueue   int64         `json:"queue,omitzero"`    // see [MaxQueue]
	Slack      int64         `json:"slack,omitzero"`    // see [Slack]
	DelayAfter int64         `json:"delay,omitzero"`    // see [DelayAfter]
	NoDelay    bool          `json:"nodelay,omitzero"`  // see [NoDelay]
	Warmup     time.Duration `json:"warmup,omitzero"`   // see [NewSmoothWarmingUp]
	ColdFactor float64       `json:"cold,omitzero"`     // see [ColdFactor]
	Cells      int64         `json:"cells,omitzero"`    // see [Cells]
	Offset     time.Duration `json:"offset,omitzero"`   // see [Offset]
	AlignedTo  time.Time     `json:"aligned,omitzero"`  // see [AlignedTo]
	Zone       string        `json:"zone,omitzero"`     // see [Zone]
	StartDay   int64         `json:"start,omitzero"`    // see [StartDay]
	Spread     bool          `json:"spread,omitzero"`   // see [Spread]
	MaxKeys    int64         `json:"keys,omitzero"`     // see [MaxKeys]
	DenyNew    bool          `json:"deny-new,omitzero"` // see [DenyNew]

	zeros uint32 // options given as zero: bit i is fields[i]
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

const defaultAlgorithm = "token-bucket"

// algorithms lists every limiter that a Spec can make. As a variable it would
// link all of them into every program.
func algorithms() []algorithm {
	return []algorithm{
		{&tokenBucket, asLimiter(newTokenBucket)},
		{&leakyBucket, asLimiter(newLeakyBucket)},
		{&pacer, asLimiter(newPacer)},
		{&nginx, asLimiter(newNginx)},
		{&smoothBursty, asLimiter(newSmoothBursty)},
		{&smoothWarmingUp, asLimiter(newSmoothWarmingUp)},
		{&fixedWindow, asLimiter(newFixedWindow)},
		{&slidingWindow, asLimiter(newSlidingWindow)},
		{&slidingLog, asLimiter(newSlidingLog)},
		{&strict, asLimiter(newStrict)},
	}
}

type algorithm struct {
	*kind
	make func(Spec) (Limiter, error)
}

// kind names an algorithm and its options.
type kind struct {
	name  string   // in a Spec
	title string   // in errors
	takes []string // options
}

// asLimiter adapts a constructor. (A nil *L in a Limiter would not be nil.)
func asLimiter[L Limiter](construct func(Spec) (L, error)) func(Spec) (Limiter, error) {
	return func(s Spec) (Limiter, error) {
		l, err := construct(s)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
}

func algorithmNamed(name string) (algorithm, error) {
	if name == "" {
		name = defaultAlgorithm
	}
	all := algorithms()
	known := make([]string, 0, len(all))
	for _, a := range all {
		if a.name == name {
			return a, nil
		}
		known = append(known, a.name)
	}
	return algorithm{}, fmt.Errorf("algo: spec: algorithm is %q, want %s", name, strings.Join(known, ", "))
}

// New makes the limiter that s describes. Options in extra override the Spec.
// The error names the field and its value.
func (s Spec) New(extra ...Option) (Limiter, error) {
	a, err := algorithmNamed(s.Algorithm)
	if err != nil {
		return nil, err
	}
	if s, err = a.configure(s, extra); err != nil {
		return nil, err
	}
	return a.make(s)
}

// With returns s with opts written over it and the algorithm's name filled in.
// The errors are the same as from [Spec.New].
func (s Spec) With(opts ...Option) (Spec, error) {
	a, err := algorithmNamed(s.Algorithm)
	if err != nil {
		return Spec{}, err
	}
	if s, err = a.configure(s, opts); err != nil {
		return Spec{}, err
	}
	if _, err := a.make(s); err != nil {
		return Spec{}, err
	}
	return s, nil
}

// validate returns the error of New.
func (s Spec) validate() error {
	_, err := s.New()
	return err
}

// Given reports whether an option, by its name in the text form, was set: to a
// value other than zero, or to zero by an [Option], by [Parse] or in JSON.
func (s Spec) Given(option string) bool {
	for i, f := range fields {
		if f.word == option {
			return s.given(i)
		}
	}
	return false
}

func (s *Spec) given(i int) bool { return s.zeros>>i&1 == 1 || fields[i].text(s) != "" }

// mark records that field i was given, in case its value is zero.
func (s *Spec) mark(i int) {
	s.zeros &^= 1 << i
	if f := fields[i]; f.is(zeroCounts) && f.text(s) == "" {
		s.zeros |= 1 << i
	}
}

// Options returns the options of s that were given, for constructors that take
// a [Rate] and Options.
func (s Spec) Options() (opts []Option) {
	for i, f := range fields {
		if s.given(i) {
			opts = append(opts, Option{f.option, func(to *Spec) { f.copy(to, &s) }})
		}
	}
	return opts
}

// Apply changes the limit of l, which is in use, to s, as a whole: after an
// error l keeps its limit. Keys keep what they have spent, as with SetRate: windows
// and logs in units, buckets as the time until they are full.
//
// The algorithm and the options warmup, cold, cells, offset, aligned, zone,
// start, spread, keys and deny-new cannot be changed in use; the error names the first that
// differs. All others take the value or the default of s, and a burst that s
// does not give follows the rate again.
//
// l, or one limiter beneath it (see [Walk]), must have the method SetSpec(Spec) error, as
// the algorithms of this package have. Where several have it, as in a composition of limits
// over time, apply the Spec to one of them.
func (s Spec) Apply(l Limiter) error {
	type changeable interface{ SetSpec(Spec) error }
	var only changeable
	for one := range Walk(l) {
		if c, ok := one.(changeable); ok {
			if only != nil {
				return fmt.Errorf("algo: spec: %T has several limits to change: apply the Spec to one of them", l)
			}
			only = c
		}
	}
	if only == nil {
		return fmt.Errorf("algo: spec: %T has no limit to change: apply the Spec to the limiter that it chooses, or make a new one", l)
	}
	return only.SetSpec(s)
}

// replace returns next, checked as the new Spec of a limiter of kind k that has
// the Spec s.
func (s *Spec) replace(k *kind, next Spec) (Spec, error) {
	if next.Algorithm == "" {
		next.Algorithm = defaultAlgorithm
	}
	if next.Algorithm != k.name {
		return next, fmt.Errorf("algo: %s: algorithm is %q and cannot be changed in use: make a new limiter", k.title, next.Algorithm)
	}
	next, err := k.configure(next, nil)
	if err != nil {
		return next, err
	}
	for i, f := range fields {
		if was, is := s.value(i), next.value(i); f.is(permanent) && was != is {
			return next, fmt.Errorf("algo: %s: %s is %s and cannot be changed from %s in use: make a new limiter", k.title, f.word, is, was)
		}
	}
	return next, nil
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
