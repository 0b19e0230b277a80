package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/warning"
)

// errNegative refuses a negative cost, which would add to the quota.
var errNegative = fmt.Errorf("the cost function returned a negative cost: %w", algo.ErrCost)

// undecided classifies a failure of the limiter or of the key function:
//   - Canceled: the call's context has ended, so the failure does not matter;
//   - FailedClosed: the policy says so, or a client may have provoked the
//     failure (a cost out of range, a deadline too short for the limiter);
//   - FailedOpen: otherwise.
func (p *Policy[C]) undecided(ctx context.Context, err error) (telemetry.Result, error) {
	if over := ended(ctx); over != nil {
		return telemetry.Canceled, over
	}
	p.logFailure(err)
	if !p.FailOpen || errors.Is(err, algo.ErrCost) || errors.Is(err, algo.ErrWait) {
		return telemetry.FailedClosed, err
	}
	return telemetry.FailedOpen, err
}

// ended is the error of ctx, or the one that it has from its deadline on: a limiter may see
// that the time is over before the timer of ctx does, or ctx may have none.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil || TimeLeft(ctx) > 0 {
		return err
	}
	return context.DeadlineExceeded
}

// undecidedLines are the lines of failures, by transport.
var undecidedLines = [...]struct {
	warning.Line
	pause warning.Pause
}{
	telemetry.HTTP: {Line: warning.Line{Code: "httpmw.undecided", Message: "httpmw: cannot decide on requests", Do: "check the limiter and the key function"}},
	telemetry.GRPC: {Line: warning.Line{Code: "grpcmw.undecided", Message: "grpcmw: cannot decide on calls", Do: "check the limiter and the key function"}},
}

// logFailure logs why calls cannot be decided, at most once in 10 s. Clients
// never see it.
func (p *Policy[C]) logFailure(err error) {
	if line := &undecidedLines[p.Transport]; line.pause.Over(10 * time.Second) {
		line.Print("policy", p.Name, "error", err.Error())
	}
}

// keyless watches for a policy, or a table of plans, that finds no key.
type keyless struct {
	share warning.Share
	pause warning.Pause
}

// noKey counts a call without a key, and logs that nearly all are: after pause once more.
func (k *keyless) noKey(policy string, err error, pause time.Duration) {
	if k.share.Odd() && k.pause.Over(pause) {
		warnKeyless.Print("policy", policy, "error", err.Error())
	}
}

var warnKeyless = warning.Line{
	Code:    "keyfunc.no_key",
	Message: "keyfunc: nine of ten requests have no key, so they share one limit, or pass unlimited",
	Do:      "find out why they have no identity; authentication may fail, or come after the limit",
}

const (
	// keyed is how many calls without a key one with a key makes up for.
	keyed = 9
	// never is a pause that does not end: calls without a key are expected.
	never = 100 * 365 * 24 * time.Hour
)

// ResetFailures makes the next failure be logged. It is for tests.
func ResetFailures() {
	for i := range undecidedLines {
		undecidedLines[i].pause.Reset()
	}
}
