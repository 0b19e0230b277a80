package algo

import (
	"fmt"
	"slices"
	"strings"
)

// Parse reads a Spec from its text form: the algorithm, which may be left out
// if it is token-bucket, the rate as [ParseRate] reads it, and options in any
// order, each at most once:
//
//	100/s
//	100/min burst 20 wait 500ms
//	sliding-window 5/15m cells 10
//	nginx 10/s burst 20 nodelay
//	pacer 50/s slack 5 wait 2s keys 100000 full deny-new
//
// The algorithms and the options that each takes, beside keys and full, which
// all do:
//
//	token-bucket       burst N, wait D
//	leaky-bucket       burst N
//	pacer              slack N, wait D, queue N
//	nginx              burst N, delay N, nodelay
//	smooth-bursty      burst N, wait D
//	smooth-warming-up  warmup D, cold F, wait D
//	fixed-window       offset D, aligned T, spread
//	sliding-window     cells N
//	sliding-log
//	strict             burst N
//
// N is a whole number, F a number, D a duration such as 500ms or the word
// forever, T a time such as 2026-01-31T00:00:00Z; keys is [MaxKeys], full is
// [OnFull] with one of overflow, deny-new and allow-new, and the others are
// named as their Options.
//
// The error names the field and its value. What Parse returns makes a limiter,
// and its String parses to the same Spec.
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
			return fmt.Errorf("algo: spec: %q stands twice", word)
		}
		seen, words = append(seen, word), words[1:]
		if !isFlag(word) {
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

func isFlag(word string) bool {
	return slices.ContainsFunc(specFields, func(f specField) bool { return f.flag && f.word == word })
}
