package algo

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// field describes one option of a Spec.
type field struct {
	word   string // in text and JSON
	option string // the name of its Option
	traits trait
	parse  func(s *Spec, value string) error
	text   func(s *Spec) string            // the value; "" if it is zero
	of     func(from *Spec) func(to *Spec) // writes the value of from
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
		of: func(from *Spec) func(*Spec) {
			v := *at(from)
			return func(to *Spec) { *at(to) = v }
		},
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
