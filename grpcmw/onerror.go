package grpcmw

import "fmt"

// FailPolicy is what becomes of a call that could not be decided, because the
// limiter or the key function failed.
type FailPolicy uint8

const (
	// FailOpen lets it pass unlimited. A client that can make the key function
	// fail, with a malformed token for example, is not limited at all.
	FailOpen FailPolicy = iota
	// FailClosed answers UNAVAILABLE.
	FailClosed
)

// WithOnError sets what becomes of a call that could not be decided. The
// default is FailClosed.
//
// It does not apply to a negative cost, nor to a limiter that says that admission
// would outlast the deadline (algo.ErrWait). These are always refused: a client
// may be able to provoke them, and must not pass for it.
//
// Failures are logged through log/slog, one in 10 s at most, with code
// grpcmw.undecided.
func WithOnError(p FailPolicy) Option {
	return Option{"WithOnError", func(s *settings) error {
		s.onError = p
		if p > FailClosed {
			return fmt.Errorf("is %d, want FailOpen or FailClosed", p)
		}
		return nil
	}}
}
