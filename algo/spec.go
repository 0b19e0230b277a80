package algo

import (
	"fmt"
	"strings"
	"time"
)

// Spec is a limit as data, for configuration that lives in files: see [Parse]
// for its text form. The zero value of a field stands for the default.
//
// In JSON a Spec is written as an object, and read from an object or from a
// string in the text form. The rate, durations and times are strings there:
//
//	{"rate": "100/min", "burst": 20, "wait": "500ms"}
//	"100/min burst 20 wait 500ms"
type Spec struct {
	Algorithm  string        `json:"algorithm,omitzero"` // default: token-bucket
	Rate       Rate          `json:"rate"`
	Burst      int64         `json:"burst,omitzero"`   // see [Burst]
	MaxWait    time.Duration `json:"wait,omitzero"`    // see [MaxWait]
	MaxQueue   int64         `json:"queue,omitzero"`   // see [MaxQueue]
	Slack      int64         `json:"slack,omitzero"`   // see [Slack]
	DelayAfter int64         `json:"delay,omitzero"`   // see [DelayAfter]
	NoDelay    bool          `json:"nodelay,omitzero"` // see [NoDelay]
	Warmup     time.Duration `json:"warmup,omitzero"`  // see [NewSmoothWarmingUp]
	ColdFactor float64       `json:"cold,omitzero"`    // see [ColdFactor]
	Cells      int64         `json:"cells,omitzero"`   // see [Cells]
	Offset     time.Duration `json:"offset,omitzero"`  // see [Offset]
	AlignedTo  time.Time     `json:"aligned,omitzero"` // see [AlignedTo]
	Spread     bool          `json:"spread,omitzero"`  // see [Spread]
	MaxKeys    int64         `json:"keys,omitzero"`    // see [MaxKeys]
	OnFull     FullPolicy    `json:"full,omitzero"`    // see [OnFull]

	zeros uint32 // the fields that were given as zero: bit i is specFields[i]
}

// Given reports whether the option, by its name in the text form, was set: to
// something else than zero, or to zero by Parse, JSON or Resolve.
func (s Spec) Given(option string) bool {
	for i, f := range specFields {
		if f.word == option {
			return s.given(i)
		}
	}
	return false
}

func (s *Spec) given(i int) bool { return s.zeros>>i&1 == 1 || specFields[i].text(s) != "" }

// mark remembers that a field was given, in case it was given as zero.
func (s *Spec) mark(i int) {
	if f := specFields[i]; f.zeros && f.text(s) == "" {
		s.zeros |= 1 << i
	}
}

// set reads the value of one option.
func (s *Spec) set(word, value string) error {
	for i, f := range specFields {
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

// String writes the Spec as Parse reads it.
func (s Spec) String() string {
	var b strings.Builder
	if s.Algorithm != "" && s.Algorithm != defaultAlgorithm {
		b.WriteString(s.Algorithm + " ")
	}
	b.WriteString(s.Rate.String())
	s.each(func(f *specField, value string) {
		b.WriteString(" " + f.word)
		if !f.flag {
			b.WriteString(" " + value)
		}
	})
	return b.String()
}

// each visits the options that were given.
func (s *Spec) each(visit func(f *specField, value string)) {
	for i := range specFields {
		f := &specFields[i]
		if v := f.text(s); v != "" {
			visit(f, v)
		} else if s.given(i) {
			visit(f, "0")
		}
	}
}

// New makes the limiter that s describes. Options in extra come after those of
// s. The error names the field and the value that no limit can keep.
func (s Spec) New(extra ...Option) (Limiter, error) {
	a, err := algorithmNamed(s.Algorithm)
	if err != nil {
		return nil, err
	}
	if s.MaxKeys > mostMaxKeys { // which an int may not hold
		return nil, fmt.Errorf("algo: spec: max keys is %d, want 1 to %d", s.MaxKeys, mostMaxKeys)
	}
	s.Algorithm = a.name
	var opts []Option
	s.each(func(f *specField, _ string) {
		if f.option != nil {
			opts = append(opts, f.option(&s))
		}
	})
	return a.make(&s, append(opts, extra...))
}

// validate finds what New would refuse.
func (s Spec) validate() error {
	_, err := s.New()
	return err
}

// Resolve reads options for a package that makes limiters of its own from a
// [Rate] and Options, such as a backend. It refuses what the constructor of the
// named algorithm refuses, with the same errors. In the Spec, options that were
// not given are zero; see [Spec.Given].
func Resolve(algorithm string, r Rate, opts ...Option) (Spec, error) {
	a, err := algorithmNamed(algorithm)
	if err != nil {
		return Spec{}, err
	}
	s := Spec{Algorithm: a.name, Rate: r}
	if _, err := a.make(&s, opts); err != nil {
		return Spec{}, err
	}
	var given settings
	for _, o := range opts {
		o.apply(&given)
	}
	for i, f := range specFields {
		if f.read(&s, &given) {
			s.mark(i)
		}
	}
	return s, nil
}
