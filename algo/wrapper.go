package algo

import (
	"context"
	"fmt"
	"iter"
	"reflect"
)

// Wrapper is a limiter over others: Unwrap always returns the same limiters, all that Acquire may
// ask, in order. [Walk] and [Peek] look through it; a composition calls its Acquire, so a wrapper
// that counts keeps counting.
type Wrapper interface {
	Limiter
	Unwrap() []Limiter
}

// Chooser is a limiter that hands each request to another one, such as an operator's switch or a
// plan: Acquire only forwards to the result of Choose. Compositions acquire from that directly, so
// that a [Batcher] behind a choice still decides in one step. Choose returns nil only with an
// error.
type Chooser interface {
	Limiter
	Choose(ctx context.Context, key string) (Limiter, error)
}

// Resolve returns l with its choices made for one request: the limiter that a [Chooser] chooses for
// key, inside [All] too. All charges, peeks and corrections of the request go to it. It allocates
// nothing if l has no choices.
func Resolve(ctx context.Context, l Limiter, key string) (Limiter, error) {
	l, err := chosen(ctx, l, key)
	if several, ok := l.(interface {
		resolve(ctx context.Context, key string) (Limiter, error)
	}); ok && err == nil {
		return several.resolve(ctx, key)
	}
	return l, err
}

// chosen makes choices, except inside All.
func chosen(ctx context.Context, l Limiter, key string) (Limiter, error) {
	for {
		c, chooses := l.(Chooser)
		if !chooses {
			return l, nil
		}
		next, err := c.Choose(ctx, key)
		switch {
		case err != nil:
			return nil, err
		case next == nil:
			return nil, fmt.Errorf("%w: %T chose no limiter", errRequest, l)
		}
		l = next
	}
}

// Walk returns l and all limiters beneath it, depth first, each once. It does not call Choose:
// behind a [Chooser] it finds the results of Unwrap.
func Walk(l Limiter) iter.Seq[Limiter] {
	return func(yield func(Limiter) bool) { walk(l, map[Limiter]bool{}, yield) }
}

func walk(l Limiter, seen map[Limiter]bool, yield func(Limiter) bool) bool {
	if t := reflect.ValueOf(l); t.Kind() == reflect.Pointer || t.Comparable() {
		if seen[l] {
			return true
		}
		seen[l] = true
	}
	if !yield(l) {
		return false
	}
	if w, ok := l.(Wrapper); ok {
		for _, inner := range w.Unwrap() {
			if !walk(inner, seen, yield) {
				return false
			}
		}
	}
	return true
}

type tentativeKey struct{}

var tentative = context.WithValue(context.Background(), tentativeKey{}, true)

// Tentative returns ctx for an Acquire whose denial is no offence, because the caller then asks for
// less, elsewhere or after RetryAfter. Package guard does not count such denials.
func Tentative(ctx context.Context) context.Context {
	switch {
	case ctx == context.Background():
		return tentative
	case IsTentative(ctx):
		return ctx
	}
	return context.WithValue(ctx, tentativeKey{}, true)
}

// IsTentative reports whether ctx is [Tentative], for limiters that count denials.
func IsTentative(ctx context.Context) bool { return ctx.Value(tentativeKey{}) != nil }

// wrapping is a limiter over another one.
type wrapping struct{ limiter Limiter }

// Unwrap returns the wrapped limiter.
func (w *wrapping) Unwrap() []Limiter { return []Limiter{w.limiter} }
