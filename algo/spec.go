package algo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Spec is a limit as data, for configuration that lives in files: see [Parse]
// for its text form. The zero value of a field stands for the default.
//
// In JSON a Spec is written as an object, and read from an object or from a
// string in the text form. Durations and the rate are strings there:
//
//	{"rate": "100/min", "burst": 20, "wait": "500ms"}
//	"100/min burst 20 wait 500ms"
type Spec struct {
	Algorithm string        `json:"algorithm,omitempty"` // default: token-bucket
	Rate      Rate          `json:"rate"`
	Burst     int64         `json:"burst,omitempty"` // see [Burst]
	MaxWait   time.Duration `json:"wait,omitempty"`  // see [MaxWait]
	MaxKeys   int           `json:"keys,omitempty"`  // see [MaxKeys]
	OnFull    FullPolicy    `json:"full,omitempty"`  // see [OnFull]
}

// Parse reads a Spec from its text form: the algorithm, which may be left out
// if it is token-bucket, the rate as [ParseRate] reads it, and options in any
// order, each at most once:
//
//	100/s
//	100/min burst 20 wait 500ms
//	token-bucket 10/h keys 100000 full deny-new
//
// The options are:
//
//	burst N   the most units at once        [Burst]
//	wait D    the longest Delay, or forever [MaxWait]
//	keys N    how many keys are kept apart  [MaxKeys]
//	full P    overflow, deny-new, allow-new [OnFull]
//
// The algorithms are token-bucket with all of these options. The error names
// the field and its value. What Parse returns makes a limiter, and its String
// parses to the same Spec.
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
		word := words[0]
		if slices.Contains(seen, word) {
			return fmt.Errorf("algo: spec: %s stands twice", word)
		}
		if len(words) < 2 {
			return fmt.Errorf("algo: spec: %q has no value", word)
		}
		if err := s.set(word, words[1]); err != nil {
			return err
		}
		seen, words = append(seen, word), words[2:]
	}
	return nil
}

// set reads the value of one option.
func (s *Spec) set(word, value string) error {
	for _, f := range specFields {
		if f.word == word {
			if err := f.parse(s, value); err != nil {
				return fmt.Errorf("algo: spec: %s is %q, %w", word, value, err)
			}
			return nil
		}
	}
	return fmt.Errorf("algo: spec: %q is not an option", word)
}

// String writes the Spec as Parse reads it.
func (s Spec) String() string {
	var b strings.Builder
	if s.Algorithm != "" && s.Algorithm != defaultAlgorithm {
		b.WriteString(s.Algorithm + " ")
	}
	b.WriteString(s.Rate.String())
	for _, f := range specFields {
		if v := f.format(&s); v != "" {
			b.WriteString(" " + f.word + " " + v)
		}
	}
	return b.String()
}

// New makes the limiter that s describes. Options in extra come after those of
// s. The error names the field and the value that no limit can keep.
func (s Spec) New(extra ...Option) (Limiter, error) {
	a, err := algorithmNamed(s.Algorithm)
	if err != nil {
		return nil, err
	}
	var opts []Option
	for _, f := range specFields {
		if f.format(&s) != "" {
			opts = append(opts, f.option(&s))
		}
	}
	return a.make(s.Rate, append(opts, extra...))
}

func (s Spec) validate() error {
	_, err := s.New()
	return err
}

// Quota is the most units that fit at once: Burst, or the rate's count where
// that is not set.
func (s Spec) Quota() int64 {
	if s.Burst != 0 {
		return s.Burst
	}
	return s.Rate.Count
}

// Resolve reads options for a package that makes limiters of its own from a
// [Rate] and Options, such as a backend. It refuses what the constructor of the
// named algorithm refuses, with the same errors. In the Spec, fields that were
// not given are zero.
func Resolve(algorithm string, r Rate, opts ...Option) (Spec, error) {
	a, err := algorithmNamed(algorithm)
	if err != nil {
		return Spec{}, err
	}
	if _, err := a.make(r, opts); err != nil {
		return Spec{}, err
	}
	var given settings
	for _, o := range opts {
		o.apply(&given)
	}
	s := Spec{Algorithm: a.name, Rate: r}
	for _, f := range specFields {
		f.read(&s, &given)
	}
	return s, nil
}
