// Package admission decides whether a request may start. It is the part that
// httpmw and grpcmw share: key, cost, acquire, wait, classify, report. An
// adapter turns its protocol's request into a call of type C and the result
// into an answer.
package admission

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
)

// Adapter is the side of the protocol on which a policy admits calls.
type Adapter struct {
	Package   string // prefix of panics and of codes in log lines
	Transport telemetry.Transport
}

// Policy is one limit on calls of type C. It does not change once it is made.
type Policy[C any] struct {
	Adapter
	*Settings[C]
	Fields
	Name  string
	Key   func(C) (string, error)
	Cost  func(C) int64 // nil: 1
	Index int           // among its Policies
}

// Misuse panics: a service that is wired wrongly must not start.
func (a Adapter) Misuse(constructor, what string) {
	panic(a.Package + ": " + constructor + ": " + what)
}

// Error is the error of a method that runs in use; nil for nil.
func (a Adapter) Error(of string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", a.Package, of, err)
}

// Require calls Misuse unless ok.
func (a Adapter) Require(ok bool, constructor, what string) {
	if !ok {
		a.Misuse(constructor, what)
	}
}

// unbounded is the limit of an adaptive limiter that sees no reason for one. It
// may still deny, for the run queue of the processor.
const unbounded = math.MaxInt32

// defaultName describes the limit, if there is one: "100-per-minute",
// "64-concurrent-requests".
func defaultName(l algo.Limiter) string {
	d := algo.About(l)
	if d.Quota == unbounded && d.Unit == algo.ConcurrentRequests {
		d.Quota = 0
	}
	return d.String()
}

const (
	maxName  = 64
	nameText = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-"
)

// CheckName accepts names that need no escaping in any protocol.
func CheckName(name string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("%q has %d bytes, want 1 to %d", name, len(name), maxName)
	case strings.Trim(name, nameText) != "":
		return fmt.Errorf("%q has characters other than letters, digits, dot, underscore and hyphen", name)
	}
	return nil
}

// IsNil also finds the nil pointer inside an interface, which would panic on
// the first call only.
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
