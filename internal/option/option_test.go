package option_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/option"
)

type opt struct {
	name  string
	apply func(*[]string) error
}

func (o opt) split() (string, func(*[]string) error) { return o.name, o.apply }

func set(name string) opt {
	return opt{name, option.Sets(func(to *[]string) { *to = append(*to, name) })}
}

func TestApply(t *testing.T) {
	refuses := opt{"C", func(*[]string) error { return errors.New("is 3") }}
	isNil := opt{"D", func(*[]string) error { return option.NotNil(false) }}
	for want, opts := range map[string][]opt{
		"":                                 {set("B"), set("A")},
		"the zero Option is not an option": {set("A"), {}},
		"duplicate option A":               {set("A"), set("B"), set("A")},
		"does not take the option X, only A, B, C, D": {set("A"), set("X")},
		"C: is 3":   {refuses, set("A")},
		"D: is nil": {isNil},
	} {
		var to []string
		err := option.Apply(&to, opts, opt.split, []string{"A", "B", "C", "D"})
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, []string{"B", "A"}, to)
			continue
		}
		require.EqualError(t, err, want)
	}
	require.NoError(t, option.Apply(new([]string), []opt{set("X")}, opt.split, nil), "nil takes all")
}
