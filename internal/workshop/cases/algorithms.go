package cases

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// algorithms lists every algorithm of package algo with its forms: texts of a Spec that differ in
// how a key is kept or decided on. In them R is the rate, D twice the rate, N its count, L one less,
// and P its period. A new key may spend N units at once, but for those with the trait Ahead. The
// traits follow the colon.
var algorithms = []struct {
	name  string
	forms []string
}{
	{"token-bucket", []string{"R", "R wait P : delays"}},
	{"leaky-bucket", []string{"R"}},
	{"pacer", []string{"R slack L queue 0", "R wait P queue L : delays"}},
	{"nginx", []string{"R burst L nodelay", "R burst L delay 1 : delays"}},
	{"smooth-bursty", []string{"R burst N : ahead", "R burst N wait P : ahead delays"}},
	{"smooth-warming-up", []string{"R : ahead", "R warmup P : ahead", "R warmup P cold 3 wait P : ahead delays"}},
	{"fixed-window", []string{"R", "R spread", "N/day zone Europe/Berlin"}},
	{"sliding-window", []string{"R", "R cells 4"}},
	{"sliding-log", []string{"R"}},
	{"strict", []string{"D burst N"}},
}

// Traits of forms, for [Without].
const (
	Ahead  = "ahead"  // a key pays for an admission before its next one: its cost is not what must fit
	Delays = "delays" // some of the N units at once are admitted with a Delay
)

// Without has what a test leaves out, with the reason: names of algorithms, words of their
// forms, such as wait or zone, and traits. Several words leave out the forms that have all.
type Without map[string]string

// Algorithms returns the name of every algorithm.
func Algorithms() (names []string) {
	for _, a := range algorithms {
		names = append(names, a.name)
	}
	return names
}

// Limits returns the text of a limit of every algorithm in every form at rate, such as 10/h,
// but for those that without leaves out. It panics if an entry of without leaves nothing out, or
// has no reason.
func Limits(rate string, without Without) (texts []string) {
	count, period, _ := strings.Cut(rate, "/")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		panic(err)
	}
	if length, ok := map[string]string{"s": "1s", "min": "1m", "h": "1h", "day": "24h"}[period]; ok {
		period = length
	}
	values := strings.NewReplacer(" R", " "+rate, " D", fmt.Sprint(" ", 2*n, "/", period), " N", " "+count, " L", fmt.Sprint(" ", n-1), " P", " "+period)
	used := Without{}
	for _, a := range algorithms {
		for _, f := range a.forms {
			if without.leavesOut(append(strings.Fields(f), a.name), used) {
				continue
			}
			form, _, _ := strings.Cut(f, " :")
			texts = append(texts, a.name+values.Replace(" "+form))
		}
	}
	for words, reason := range without {
		if used[words] == "" {
			panic(fmt.Sprintf("cases: %q: %q leaves nothing out, or has no reason", words, reason))
		}
	}
	return texts
}

// leavesOut reports whether w has an entry all of whose words are among those of a form. It notes the
// entry as used.
func (w Without) leavesOut(form []string, used Without) (out bool) {
	for words, reason := range w {
		if !slices.ContainsFunc(strings.Fields(words), func(word string) bool { return !slices.Contains(form, word) }) {
			out, used[words] = true, reason
		}
	}
	return out
}
