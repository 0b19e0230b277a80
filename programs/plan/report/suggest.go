package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluice-go/sluice/algo/backtest"
)

// Suggestion is a limit that denies nothing to the covered keys.
type Suggestion struct {
	Limit    string `json:"limit"`
	Room     int64  `json:"room"` // units at once, or a window
	Minute   int64  `json:"most_in_a_minute,omitempty"`
	Keys     int64  `json:"keys_covered"`
	Requests int64  `json:"requests_covered"`
	All      string `json:"limit_for_all_keys,omitempty"`
	Tightest bool   `json:"tightest,omitempty"`
	SetBy    *Key   `json:"set_by,omitempty"`     // the only key that needs all of the tightest
	Without  string `json:"without_it,omitempty"` // the limit that the other covered keys need

	index int
	rate  float64 // a second; 0: a window
	all   int64
}

// suggest reads the curves. The tightest bucket is the one that admits the least in a minute to a key
// that takes all it can.
func (r *Result) suggest(o Options) {
	tightest := -1
	for i := range r.result.Curves {
		curve := &r.result.Curves[i]
		cover, ok := curve.Cover(o.Cover)
		if !ok {
			if r.Requests > 0 && !isWindow(curve.Spec) {
				r.unfit = append(r.unfit, curve.Spec.Rate.String())
			}
			continue
		}
		s := Suggestion{Limit: cover.Spec.String(), Room: cover.Units, Keys: cover.Keys, Requests: cover.Requests, index: i}
		if all, ok := curve.Cover(1); ok {
			s.All, s.all = all.Spec.String(), all.Units
		}
		if !isWindow(curve.Spec) {
			s.rate = float64(curve.Spec.Rate.Count) / curve.Spec.Rate.Period.Seconds()
			s.Minute = int64(min(float64(cover.Units)+s.rate*60, math.MaxInt64/2))
			if tightest < 0 || s.Minute <= r.Suggestions[tightest].Minute {
				tightest = len(r.Suggestions)
			}
		}
		r.Suggestions = append(r.Suggestions, s)
	}
	if tightest >= 0 {
		best := &r.Suggestions[tightest]
		best.Tightest = true
		r.explain(best, &r.result.Curves[best.index], o.Keys)
	}
}

// explain lists the keys that the best suggestion does not cover, at most so many, and names the one that sets it.
func (r *Result) explain(best *Suggestion, curve *backtest.Curve, most int) {
	key := func(k backtest.Key) Key { return Key{Key: r.show(k.Name), Requests: k.Requests, Needs: k.Units} }
	needy := curve.Above(best.Room - 1)
	left := slices.IndexFunc(needy, func(k backtest.Key) bool { return k.Units == best.Room })
	for _, k := range needy[:min(left, most)] {
		r.NotCovered = append(r.NotCovered, key(k))
	}
	if without, _ := curve.Cover(float64(best.Keys-1) / float64(r.Keys)); left == len(needy)-1 && without.Units < best.Room {
		setter := key(needy[left])
		best.SetBy, best.Without = &setter, without.Spec.String()
	}
}

// best is the tightest suggestion, or nil.
func (r *Result) best() *Suggestion {
	for i := range r.Suggestions {
		if r.Suggestions[i].Tightest {
			return &r.Suggestions[i]
		}
	}
	return nil
}

// answer is the tightest suggestion in words.
func (r *Result) answer(best *Suggestion) string {
	text := best.Limit + " admits the least in a minute. "
	if k := best.SetBy; k != nil {
		text += fmt.Sprintf("Set by %s (%s); without it %s. ", k.Key, count(k.Requests, "request"), best.Without)
	}
	left := r.Keys - best.Keys
	if left == 0 {
		return text + "It would have denied nothing to any key."
	}
	end := ":"
	switch listed := int64(len(r.NotCovered)); {
	case listed == 0:
		end = "."
	case listed < left:
		end = ", among them:"
	}
	return text + fmt.Sprintf("It would have denied nothing to %s; %s of %s would have been denied a request%s", count(best.Keys, "key"), group(left), group(r.Keys), end)
}
