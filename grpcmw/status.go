package grpcmw

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/internal/cause"
)

// statusError is the error of a refused call on the server. gRPC and other
// interceptors see the status; limiters further out recognize the type.
type statusError struct {
	status   *status.Status
	pushback int32
	begun    bool // a message was refused: the handler had begun
}

// Error is the text that an error of package status would have.
func (e *statusError) Error() string { return e.status.String() }

// GRPCStatus is the status that the client receives.
func (e *statusError) GRPCStatus() *status.Status { return e.status }

// denialIn finds the denial in the error of a call, nil if it is another error.
func denialIn(err error) *statusError {
	var d *statusError
	errors.As(err, &d)
	return d
}

// The texts that clients see. None depends on input from a client.
const (
	textQuota    = "rate limit exceeded"
	textInFlight = "too many calls in flight"
	textNever    = "the call costs more than its rate limit can ever admit"
	textTooLate  = "rate limit exceeded: the wait would outlast the deadline"
	textKeyless  = "the call lacks the identity that its rate limit counts by"
	textBanned   = "the caller is banned"
	textOverload = "the server cannot take the call at the moment"
)

// refuse encodes a refusal for the caller of ctx; sent has its waits.
func (i *interceptor) refuse(ctx context.Context, a *admission.Attempt, r Result, decision *algo.Decision) (sent telemetry.Sent, code codes.Code, refused error) {
	random := rand.Float64()
	wait := a.RetryAfter(r, decision)
	retry := admission.Jitter(wait, decision.ResetAfter, algo.Forever, random)
	code, text, class := i.explain(a, r, decision)
	st := i.answers.status(code, text, class, retry)
	d := &statusError{status: st, pushback: admission.Pushback(wait, decision.ResetAfter, admission.TimeLeft(ctx), random)}
	if retry != algo.Forever {
		sent.RetryAfter = retry
	}
	sent.Pushback = d.pushback
	return sent, code, d
}

// custom replaces the status of a refusal by the one of WithDenied.
func (i *interceptor) custom(ctx context.Context, refused error, d *algo.Decision) error {
	own := denialIn(refused)
	if i.denied == nil || own == nil {
		return refused
	}
	if st := i.denied(ctx, own.status, *d); st.Code() != codes.OK {
		own.status = st
	}
	return refused
}

// explain chooses the code and the text of a refusal, and the class of the key,
// which RESOURCE_EXHAUSTED names.
func (i *interceptor) explain(a *admission.Attempt, r Result, d *algo.Decision) (code codes.Code, text, class string) {
	switch {
	case r == FailedClosed, a.Cause == admission.ByReserve:
		return codes.Unavailable, textOverload, ""
	case a.Cause == admission.ByMissingKey:
		return codes.Code(i.MissingStatus(int(codes.Unauthenticated))), textKeyless, admission.ClassMissing
	case d.Reason == algo.Banned:
		text = textBanned
	case a.Cause == admission.ByDeadline:
		text = textTooLate
	case d.Reason == algo.Overload:
		return codes.Unavailable, textOverload, ""
	case d.Reason == algo.Never:
		text = textNever
	case d.Cause == cause.Limit:
		text = textInFlight
	default:
		text = textQuota
	}
	return codes.ResourceExhausted, text, admission.ClassOf(a.Key)
}

// answers are the details of refusals that stay the same, encoded once.
type answers struct {
	quota, overload *anypb.Any
	keyless, banned *anypb.Any
	violations      map[string]*anypb.Any // by class of key
}

func newAnswers(policy, domain string) *answers {
	info := func(reason string) *anypb.Any {
		return encode(&errdetails.ErrorInfo{
			Reason: reason, Domain: domain, Metadata: map[string]string{"policy": policy},
		})
	}
	a := &answers{
		quota:      info("RATE_LIMIT_EXCEEDED"),
		overload:   info("SERVER_OVERLOADED"),
		keyless:    info("KEY_MISSING"),
		banned:     info("BANNED"),
		violations: make(map[string]*anypb.Any),
	}
	for _, class := range admission.Classes {
		a.violations[class] = encode(&errdetails.QuotaFailure{
			Violations: []*errdetails.QuotaFailure_Violation{violation(class, policy)},
		})
	}
	return a
}

func violation(class, policy string) *errdetails.QuotaFailure_Violation {
	return &errdetails.QuotaFailure_Violation{Subject: class, Description: "policy " + policy}
}

// quotaDetail is the index of the QuotaFailure among the details of a status.
const quotaDetail = 1

// status encodes a refusal. retry is when to try again; algo.Forever: never.
func (a *answers) status(code codes.Code, text, class string, retry time.Duration) *status.Status {
	s := &spb.Status{Code: int32(code), Message: text}
	switch {
	case class == admission.ClassMissing && text == textKeyless:
		s.Details = append(s.Details, a.keyless)
	case code == codes.Unavailable:
		s.Details = append(s.Details, a.overload)
	case text == textBanned:
		s.Details = append(s.Details, a.banned, a.violations[class])
	default:
		s.Details = append(s.Details, a.quota, a.violations[class])
	}
	if retry != algo.Forever {
		s.Details = append(s.Details, encode(&errdetails.RetryInfo{RetryDelay: durationpb.New(retry)}))
	}
	return status.FromProto(s)
}

// encode cannot fail on valid UTF-8, and all text here is checked.
func encode(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic("grpcmw: " + err.Error())
	}
	return a
}
