package algo

import (
	"fmt"
	"slices"
	"strings"
	"time"
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

// Burst sets the most units that fit at once, 1 or more; 0 or more for
// [NewNginx] and [NewSmoothBursty]. The default is the rate's count, unless the
// constructor states another.
func Burst(n int64) Option {
	return Option{"Burst", func(s *Spec) { s.Burst = n }}
}

// MaxWait lets a limiter admit requests that do not fit yet with a Delay of at
// most d, 0 or more. The default 0 denies them; the [Pacer] has its own default.
// Forever means the longest delay that a limiter can represent: a year, less the
// time in which the burst fills.
func MaxWait(d time.Duration) Option {
	return Option{"MaxWait", func(s *Spec) { s.MaxWait = d }}
}

// MaxKeys sets the number of keys with a state of their own, 1 to 2^31-1. The
// default is 65536. The table takes 32 bytes a key, allocated when the first key
// arrives; the sliding windows and the warm-up take more, as their types state.
// A key takes a place while it has debt: not longer than its bucket takes to
// fill after its last request.
func MaxKeys(n int) Option {
	return Option{"MaxKeys", func(s *Spec) { s.MaxKeys = int64(n) }}
}

// OnFull sets the policy for new keys while MaxKeys keys have debt. The default
// is Overflow.
func OnFull(p FullPolicy) Option {
	return Option{"OnFull", func(s *Spec) { s.OnFull = p }}
}

// FullPolicy is the policy for new keys when the table is full.
type FullPolicy uint8

const (
	// Overflow lets new keys share a fixed set of buckets, each with the limit of
	// one key. Known keys keep their own, and a flood of keys is limited as a
	// whole.
	Overflow FullPolicy = iota
	// DenyNew denies new keys. A client that can invent keys can lock others
	// out.
	DenyNew
	// AllowNew admits new keys without limit. A client that can invent keys is
	// not limited at all.
	AllowNew
)

// String returns the policy's name, for messages.
func (p FullPolicy) String() string { return nameOf(int(p), "Overflow", "DenyNew", "AllowNew") }

// text returns the policy's name in a Spec.
func (p FullPolicy) text() string { return nameOf(int(p), "overflow", "deny-new", "allow-new") }

// MarshalText writes overflow, deny-new or allow-new.
func (p FullPolicy) MarshalText() ([]byte, error) { return []byte(p.text()), nil }

// UnmarshalText reads overflow, deny-new or allow-new.
func (p *FullPolicy) UnmarshalText(text []byte) (err error) {
	known, err := parsePolicy(string(text))
	if err == nil {
		*p = known
	}
	return err
}

const (
	defaultMaxKeys = 1 << 16
	mostMaxKeys    = 1<<31 - 1
)

// maxKeys returns MaxKeys or its default.
func (s *Spec) maxKeys() int {
	if s.MaxKeys == 0 {
		return defaultMaxKeys
	}
	return int(s.MaxKeys)
}

// construct is the body of the constructors: it writes opts to s, and makes the
// limiter.
func construct[L any](k *kind, s Spec, opts []Option, make func(Spec) (L, error)) (l L, err error) {
	if s, err = k.configure(s, opts); err != nil {
		return l, err
	}
	return make(s)
}

// configure writes opts to s and checks everything that does not depend on the
// algorithm.
func (k *kind) configure(s Spec, opts []Option) (Spec, error) {
	s.Algorithm = k.name
	for i, o := range opts {
		switch {
		case o.apply == nil:
			return s, fmt.Errorf("algo: %s: the zero Option is not an option", k.title)
		case slices.ContainsFunc(opts[:i], func(p Option) bool { return p.name == o.name }):
			return s, fmt.Errorf("algo: %s: duplicate option %s", k.title, o)
		}
		if err := k.check(o.name); err != nil {
			return s, err
		}
		s.write(o)
	}
	for i, f := range fields {
		if !s.given(i) {
			continue
		}
		if err := k.check(f.option); err != nil {
			return s, err
		}
	}
	if s.Given("keys") && (s.MaxKeys < 1 || s.MaxKeys > mostMaxKeys) {
		return s, fmt.Errorf("algo: %s: max keys is %d, want 1 to %d", k.title, s.MaxKeys, mostMaxKeys)
	}
	if s.OnFull > AllowNew {
		return s, fmt.Errorf("algo: %s: on full is %d, want Overflow, DenyNew or AllowNew", k.title, s.OnFull)
	}
	return s, nil
}

// check reports an option that the algorithm does not take.
func (k *kind) check(option string) error {
	if slices.Contains(k.takes, option) {
		return nil
	}
	return fmt.Errorf("algo: %s: does not take the option %s, only %s", k.title, option, strings.Join(k.takes, ", "))
}

// write sets one option.
func (s *Spec) write(o Option) {
	o.apply(s)
	for i, f := range fields {
		if f.option == o.name {
			s.mark(i)
		}
	}
}
