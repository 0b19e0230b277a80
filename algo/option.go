package algo

import (
	"fmt"
	"strings"
	"time"
)

// Option adjusts a limiter at construction. An option that a constructor does
// not know is an error that names both, never ignored.
type Option struct {
	name  string
	apply func(*settings)
}

// settings is what options write to.
type settings struct {
	burst    int64
	burstSet bool
	maxWait  time.Duration
	window   windowSettings
	maxKeys  int
	onFull   FullPolicy

	maxWaitSet    bool
	slack         int64 // see pacer.go
	maxQueue      int64
	maxQueueSet   bool
	delayAfter    int64 // see nginx.go
	delayAfterSet bool
	noDelay       bool
	coldFactor    float64 // see warmingup.go
	coldFactorSet bool
}

// Burst sets the most units that fit at once, 1 or more. The default is the
// rate's count.
func Burst(n int64) Option {
	return Option{"Burst", func(s *settings) { s.burst, s.burstSet = n, true }}
}

// MaxWait lets a limiter admit what does not fit yet with a Delay of at most
// d. The default 0 denies instead. Forever stands for the longest delay that a
// limiter can represent, a year less the time that the burst takes to fill.
func MaxWait(d time.Duration) Option {
	return Option{"MaxWait", func(s *settings) { s.maxWait, s.maxWaitSet = d, true }}
}

// MaxKeys sets how many keys are kept apart at the same time, 1 to 2^31-1;
// the default is 65536. The table takes 32 bytes for each, at once when the
// first key arrives. A key counts while it has something to pay off: a key that
// has not been seen for as long as its bucket takes to fill is not kept.
func MaxKeys(n int) Option {
	return Option{"MaxKeys", func(s *settings) { s.maxKeys = n }}
}

// OnFull sets what happens to a new key when MaxKeys keys are live. The
// default is Overflow.
func OnFull(p FullPolicy) Option {
	return Option{"OnFull", func(s *settings) { s.onFull = p }}
}

// FullPolicy is what happens to new keys when the table is full.
type FullPolicy uint8

const (
	// Overflow lets new keys share a fixed set of buckets, each with the same
	// limit: known keys keep theirs, and a flood of keys is limited as a whole.
	Overflow FullPolicy = iota
	// DenyNew denies new keys. Whoever can make keys up can lock others out.
	DenyNew
	// AllowNew admits new keys without limit. Whoever can make keys up is not
	// limited at all.
	AllowNew
)

// String returns the policy's name, for messages.
func (p FullPolicy) String() string { return nameOf(int(p), "Overflow", "DenyNew", "AllowNew") }

const (
	defaultMaxKeys = 1 << 16
	mostMaxKeys    = 1<<31 - 1
)

// configure applies opts and checks what concerns every limiter.
func configure(limiter string, opts []Option, known ...string) (settings, error) {
	s := settings{maxKeys: defaultMaxKeys}
	for _, o := range opts {
		if o.apply == nil {
			return s, fmt.Errorf("algo: %s: the zero Option is not an option", limiter)
		}
		if !contains(known, o.name) {
			return s, fmt.Errorf("algo: %s: does not take the option %s, only %s",
				limiter, o.name, strings.Join(known, ", "))
		}
		o.apply(&s)
	}
	if s.maxKeys < 1 || s.maxKeys > mostMaxKeys {
		return s, fmt.Errorf("algo: %s: max keys is %d, want 1 to %d", limiter, s.maxKeys, mostMaxKeys)
	}
	if s.onFull > AllowNew {
		return s, fmt.Errorf("algo: %s: on full is %d, want Overflow, DenyNew or AllowNew", limiter, s.onFull)
	}
	return s, nil
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}
