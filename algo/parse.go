package algo

import (
	"fmt"
	"slices"
	"strings"
)

// Parse reads a Spec from its text form: the algorithm (default token-bucket), the rate as
// [Rate.UnmarshalText] reads it, and options in any order, each at most once:
//
//	100/s
//	100/min burst 20 wait 500ms
//	sliding-window 5/15m cells 10
//	fixed-window 1000/month zone Europe/Berlin start 31
//	pacer 50/s slack 5 wait 2s keys 100000 deny-new
//
// [Spec] lists the algorithms and their options. N is a whole number, F a number, D a duration such as
// 500ms or the word forever, T a time such as 2026-01-31T00:00:00Z, NAME a time zone; keys is
// [MaxKeys]. The error names the field and its value. A Spec that Parse returns makes a limiter, and
// its String parses to the same Spec.
func Parse(s string) (Spec, error) {
	words := strings.Fields(s)
	spec := Spec{Algorithm: defaultAlgorithm}
	if len(words) > 0 && !strings.Contains(words[0], "/") {
		spec.Algorithm, words = words[0], words[1:]
	}
	if len(words) == 0 {
		return Spec{}, fmt.Errorf("algo: spec: %q has no rate; for no limit use algo.Unlimited", s)
	}
	var err error
	if spec.Rate, err = parseRate(words[0]); err != nil {
		return Spec{}, err
	}
	if err = spec.parseOptions(words[1:]); err != nil {
		return Spec{}, err
	}
	if err = spec.validate(); err != nil {
		return Spec{}, err
	}
	return spec, nil
}

func (s *Spec) parseOptions(words []string) error {
	var seen []string
	for len(words) > 0 {
		word, value := words[0], "true"
		if slices.Contains(seen, word) {
			return fmt.Errorf("algo: spec: duplicate option %q", word)
		}
		seen, words = append(seen, word), words[1:]
		if !hasNoValue(word) {
			if len(words) == 0 {
				return fmt.Errorf("algo: spec: %q has no value", word)
			}
			value, words = words[0], words[1:]
		}
		if err := s.set(word, value); err != nil {
			return err
		}
	}
	return nil
}

func hasNoValue(word string) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return f.is(noValue) && f.word == word })
}

// set reads the value of one option.
func (s *Spec) set(word, value string) error {
	for i, f := range fields {
		if f.word != word {
			continue
		}
		if err := f.parse(s, value); err != nil {
			return fmt.Errorf("algo: spec: %s is %q, %w", word, value, err)
		}
		s.setGiven(i)
		return nil
	}
	return fmt.Errorf("algo: spec: %q is not an option", word)
}

// String returns the Spec in the text form of [Parse].
func (s Spec) String() string {
	var b strings.Builder
	if s.Algorithm != "" && s.Algorithm != defaultAlgorithm {
		b.WriteString(s.Algorithm + " ")
	}
	b.WriteString(s.Rate.String())
	s.each(func(f *field, value string) {
		b.WriteString(" " + f.word)
		if !f.is(noValue) {
			b.WriteString(" " + value)
		}
	})
	return b.String()
}

// MarshalText returns the Spec as String does, and an error for a Spec that
// makes no limiter.
func (s Spec) MarshalText() ([]byte, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	return []byte(s.String()), nil
}

// UnmarshalText reads a Spec as [Parse] does.
func (s *Spec) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err == nil {
		*s = parsed
	}
	return err
}
