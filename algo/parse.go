package algo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Parse reads a Spec from its text form: the algorithm, which may be omitted
// if it is token-bucket, the rate as [ParseRate] reads it, and options in any
// order, each at most once:
//
//	100/s
//	100/min burst 20 wait 500ms
//	sliding-window 5/15m cells 10
//	fixed-window 1000/month zone Europe/Berlin start 31
//	nginx 10/s burst 20 nodelay
//	pacer 50/s slack 5 wait 2s keys 100000 deny-new
//
// [Spec] lists the algorithms and the options of each. N is a whole number, F a
// number, D a duration such as 500ms or the word forever, T a time such as
// 2026-01-31T00:00:00Z, NAME a time zone such as Europe/Berlin; keys is [MaxKeys], and
// the others are named as their Options.
//
// The error names the field and its value. A Spec that Parse returns makes a
// limiter, and its String parses to the same Spec.
func Parse(s string) (Spec, error) {
	words := strings.Fields(s)
	spec := Spec{Algorithm: defaultAlgorithm}
	if len(words) > 0 && !strings.Contains(words[0], "/") {
		spec.Algorithm, words = words[0], words[1:]
	}
	if len(words) == 0 {
		return Spec{}, fmt.Errorf("algo: spec: %q has no rate", s)
	}
	var err error
	if spec.Rate, err = ParseRate(words[0]); err != nil {
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
		s.mark(i)
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

// each visits the options that were given.
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

// field is one option of a Spec.
type field struct {
	word   string // in the text form and in JSON
	option string // the name of its Option
	traits trait
	parse  func(s *Spec, value string) error
	text   func(s *Spec) string // the value; "" if it is zero
	copy   func(to, from *Spec)
}

// trait is a set of properties of a field.
type trait uint8

const (
	zeroCounts trait = 1 << iota // given as zero differs from not given
	noValue                      // has no value in the text form
	permanent                    // cannot be changed while the limiter is in use
)

func (f *field) is(t trait) bool { return f.traits&t != 0 }

// codec reads and writes the values of one type.
type codec[V any] struct {
	parse  func(string) (V, error)
	format func(V) string
}

func fieldOf[V comparable](word, option string, traits trait, c codec[V], at func(*Spec) *V) field {
	return field{
		word: word, option: option, traits: traits,
		parse: func(s *Spec, text string) (err error) { *at(s), err = c.parse(text); return err },
		text: func(s *Spec) string {
			var zero V
			if *at(s) == zero {
				return ""
			}
			return c.format(*at(s))
		},
		copy: func(to, from *Spec) { *at(to) = *at(from) },
	}
}

var (
	numbers   = codec[int64]{parseInt, func(n int64) string { return strconv.FormatInt(n, 10) }}
	floats    = codec[float64]{parseFloat, func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }}
	flags     = codec[bool]{parseFlag, strconv.FormatBool}
	durations = codec[time.Duration]{parseDuration, formatDuration}
	names     = codec[string]{parseName, func(s string) string { return s }}
	times     = codec[time.Time]{parseTime, func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }}
)

func parseFloat(v string) (float64, error) {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return 0, fmt.Errorf("want a number")
	}
	return f, nil
}

func parseFlag(v string) (bool, error) {
	if v != "true" && v != "false" {
		return false, fmt.Errorf("want true or false")
	}
	return v == "true", nil
}

func parseTime(v string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, v)
	if err != nil || t.IsZero() {
		return time.Time{}, fmt.Errorf("want a time such as 2026-01-31T00:00:00Z")
	}
	return t.UTC(), nil
}

func parseName(v string) (string, error) {
	if v == "" || strings.ContainsFunc(v, unicode.IsSpace) {
		return "", fmt.Errorf("want a name without spaces")
	}
	return v, nil
}
