package algo

import (
	"fmt"
	"strconv"
	"strings"
)

// algorithm is what a Spec can name.
type algorithm struct {
	name string
	make func(r Rate, opts []Option) (Limiter, error)
}

const defaultAlgorithm = "token-bucket"

// algorithms is every limiter that a Spec can make.
var algorithms = []algorithm{
	{defaultAlgorithm, maker(NewTokenBucket)},
}

// maker adapts a constructor. (A nil *L in a Limiter would not be nil.)
func maker[L Limiter](construct func(Rate, ...Option) (L, error)) func(Rate, []Option) (Limiter, error) {
	return func(r Rate, opts []Option) (Limiter, error) {
		l, err := construct(r, opts...)
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
	known := make([]string, 0, len(algorithms))
	for _, a := range algorithms {
		if a.name == name {
			return a, nil
		}
		known = append(known, a.name)
	}
	return algorithm{}, fmt.Errorf("algo: spec: algorithm is %q, want %s", name, strings.Join(known, ", "))
}

// specField is one option of a Spec: how it is written and read, and the
// Option that it stands for. The word is the field's name in JSON too.
type specField struct {
	word   string
	parse  func(s *Spec, value string) error
	format func(s *Spec) string // "" if it is not set
	option func(s *Spec) Option
	read   func(s *Spec, given *settings)
}

// specFields is every option, in the order in which String writes them. A
// constructor that does not know one says so itself.
var specFields = []specField{
	{
		word:   "burst",
		parse:  func(s *Spec, v string) (err error) { s.Burst, err = parseInt(v); return err },
		format: func(s *Spec) string { return formatInt(s.Burst) },
		option: func(s *Spec) Option { return Burst(s.Burst) },
		read:   func(s *Spec, given *settings) { s.Burst = given.burst },
	},
	{
		word:   "wait",
		parse:  func(s *Spec, v string) (err error) { s.MaxWait, err = parseDuration(v); return err },
		format: func(s *Spec) string { return formatNonZero(s.MaxWait != 0, formatDuration(s.MaxWait)) },
		option: func(s *Spec) Option { return MaxWait(s.MaxWait) },
		read:   func(s *Spec, given *settings) { s.MaxWait = given.maxWait },
	},
	{
		word: "keys",
		parse: func(s *Spec, v string) error {
			n, err := parseInt(v)
			s.MaxKeys = int(min(n, mostMaxKeys))
			if n > mostMaxKeys {
				return fmt.Errorf("want %d at most", mostMaxKeys)
			}
			return err
		},
		format: func(s *Spec) string { return formatInt(int64(s.MaxKeys)) },
		option: func(s *Spec) Option { return MaxKeys(s.MaxKeys) },
		read:   func(s *Spec, given *settings) { s.MaxKeys = given.maxKeys },
	},
	{
		word:   "full",
		parse:  func(s *Spec, v string) error { return s.OnFull.UnmarshalText([]byte(v)) },
		format: func(s *Spec) string { return formatNonZero(s.OnFull != Overflow, s.OnFull.text()) },
		option: func(s *Spec) Option { return OnFull(s.OnFull) },
		read:   func(s *Spec, given *settings) { s.OnFull = given.onFull },
	},
}

func formatInt(n int64) string { return formatNonZero(n != 0, strconv.FormatInt(n, 10)) }

func formatNonZero(set bool, s string) string {
	if !set {
		return ""
	}
	return s
}

// text is the policy as a Spec writes it.
func (p FullPolicy) text() string { return nameOf(int(p), "overflow", "deny-new", "allow-new") }

// MarshalText writes overflow, deny-new or allow-new.
func (p FullPolicy) MarshalText() ([]byte, error) { return []byte(p.text()), nil }

// UnmarshalText reads overflow, deny-new or allow-new.
func (p *FullPolicy) UnmarshalText(text []byte) error {
	for _, known := range []FullPolicy{Overflow, DenyNew, AllowNew} {
		if known.text() == string(text) {
			*p = known
			return nil
		}
	}
	return fmt.Errorf("want overflow, deny-new or allow-new")
}
