// Package admission decides whether a request may start. It is the part that
// httpmw and grpcmw share: key, cost, acquire, wait, classify, report. An
// adapter turns its protocol's request into a call of type C and the result
// into an answer.
package admission

import (
	"reflect"

	"github.com/sluice-go/sluice/algo"
)

// Policy is one limit on calls of type C. It is immutable, except for its count of calls without a
// key.
type Policy[C any] struct {
	Adapter
	*Settings[C]
	Fields
	Name  string
	Key   func(C) (string, error)
	Cost  func(C) int64 // nil: 1
	Index int           // among its Policies
	keyless
}

// defaultName describes the limit, if there is one: "100-per-minute",
// "64-concurrent-requests".
func defaultName(l algo.Limiter) string {
	d := algo.About(l)
	if d.Quota == unbounded && d.Unit == algo.ConcurrentRequests {
		d.Quota = 0
	}
	return d.String()
}

// IsNil reports whether v is nil or holds a nil pointer, which would panic only on
// the first call.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return r.IsNil()
	}
	return false
}

// Answer is the answer of the policy to a refusal.
func (p *Policy[C]) Answer(b Blame) Answer {
	a := answers[b]
	if b == Keyless {
		a.Status, a.Code = p.Missing, p.Missing // of one protocol
	}
	return a
}
