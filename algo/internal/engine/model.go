package engine

import "github.com/sluice-go/sluice/internal/decide"

// Model is the limit over one key alone, without a store: the answer to n units at now in a
// state that may be changed, and the next state. It is what a concurrent history is checked
// against. A nil state is a key that was never seen.
func (k *Keyed[S, V]) Model() func(state any, now, n int64) (decide.Answer, decide.Quota, decide.Charge, any) {
	l := k.limit.Load()
	return func(state any, now, n int64) (a decide.Answer, q decide.Quota, c decide.Charge, next any) {
		var s S
		if k.words {
			s, _ = state.(S)
		} else {
			s = copied[S, V](state)
		}
		s, a, q = l.Answer(s, now, n)
		if a.Allowed && n > 0 {
			c = l.Charge(s, now, n, a.Delay)
		}
		return a, q, c, s
	}
}

// copied returns a copy of state.
func copied[S, V any](state any) S {
	heir := new(V)
	if from, ok := state.(*V); ok {
		any(heir).(interface{ Inherit(from *V) }).Inherit(from)
	}
	return any(heir).(S)
}
