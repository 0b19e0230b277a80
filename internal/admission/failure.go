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
func (p *Policy[C]) undecided(ctx context.Context, v *Verdict[C], err error) {
	if v.Err = ended(ctx); v.Err != nil {
		v.Result = telemetry.Canceled
		v.refuse(Gone)
		return
	}
	v.Result, v.Err = telemetry.FailedOpen, err
	undecidedLines[p.Transport].Log("policy", p.Name, "error", err.Error()) // clients never see it
	if !p.FailOpen || errors.Is(err, algo.ErrCost) || errors.Is(err, algo.ErrWait) {
		v.Result = telemetry.FailedClosed
		v.refuse(Undecided)
	}
}

// ended returns ctx.Err(), or DeadlineExceeded once the deadline has passed: the timer of ctx
// may be late, or ctx may have none.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil || TimeLeft(ctx) > 0 {
		return err
	}
	return context.DeadlineExceeded
}

// undecidedLines holds the log lines of failures, by transport.
var undecidedLines = [...]warning.Once{
	telemetry.HTTP: {Line: warning.Line{Every: 10 * time.Second, Code: "httpmw.undecided", Message: "httpmw: cannot decide on requests", Do: "check the limiter and the key function"}},
	telemetry.GRPC: {Line: warning.Line{Every: 10 * time.Second, Code: "grpcmw.undecided", Message: "grpcmw: cannot decide on calls", Do: "check the limiter and the key function"}},
}

// keyless warns of a policy, or a table of plans, that finds no key.
type keyless struct {
	share warning.Share
	log   warning.Once
}

func noKeys(every time.Duration) keyless {
	return keyless{log: warning.Once{Line: warning.Line{
		Every:   every,
		Code:    "keyfunc.no_key",
		Message: "keyfunc: nine of ten requests have no key, so they share one limit, or pass unlimited",
		Do:      "find out why they have no identity; authentication may fail, or come after the limit",
	}}}
}

// noKey counts a call without a key.
func (k *keyless) noKey(policy string, err error) {
	if k.share.Odd(warning.Many) {
		k.log.Log("policy", policy, "error", err.Error())
	}
}

// keyed is how many calls without a key one call with a key offsets.
const keyed = 9

// ResetFailures makes the next failure be logged, for tests.
func ResetFailures() {
	for i := range undecidedLines {
		undecidedLines[i].Reset()
	}
}
