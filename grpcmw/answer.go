package grpcmw

import (
	"context"
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/internal/cause"
)

// statusError is the error of a refused call on the server. gRPC and other
// interceptors see the status; outer limiters recognize the type.
type statusError struct {
	status   *status.Status
	pushback int32
	begun    bool // a message was refused, after the handler had begun
}

// Error is the text that an error of package status would have.
func (e *statusError) Error() string { return e.status.String() }

// GRPCStatus is the status that the client receives.
func (e *statusError) GRPCStatus() *status.Status { return e.status }

// denialIn returns the denial that err wraps; nil if there is none.
func denialIn(err error) *statusError {
	var d *statusError
	errors.As(err, &d)
	return d
}

// texts are more specific about a spent quota than the table of answers.
var texts = map[cause.Cause]string{
	cause.Limit:    "too many calls in flight",
	cause.Deadline: "rate limit exceeded: the wait would outlast the deadline",
}

// refuse encodes a refusal by the policy of d for the caller of ctx.
func (d *details) refuse(ctx context.Context, v *verdict) *statusError {
	p := v.Gravest()
	a := p.Answer(v.Blame)
	if text := texts[v.Decision().Cause]; text != "" && v.Blame == admission.Caller {
		a.Text = text
	}
	s := &spb.Status{Code: int32(a.Code), Message: a.Text, Details: []*anypb.Any{d.info[a.Reason]}}
	if codes.Code(a.Code) == codes.ResourceExhausted && v.Blame != admission.Keyless {
		s.Details = append(s.Details, d.failure(v))
	}
	if v.Wait != algo.Forever {
		retry := time.Duration(v.Milliseconds()) * time.Millisecond
		s.Details = append(s.Details, encode(&errdetails.RetryInfo{RetryDelay: durationpb.New(retry)}))
	}
	return &statusError{status: status.FromProto(s), pushback: v.Pushback(admission.TimeLeft(ctx))}
}

// domain is the domain of ErrorInfo.
const domain = "sluice"

// details holds the details of a policy's refusals, encoded once.
type details struct {
	info       map[string]*anypb.Any // by reason
	violations map[string]*anypb.Any // by class of key
}

func newDetails(policy string) *details {
	d := &details{make(map[string]*anypb.Any), make(map[string]*anypb.Any)}
	for _, reason := range admission.Reasons {
		d.info[reason] = encode(&errdetails.ErrorInfo{Reason: reason, Domain: domain, Metadata: map[string]string{"policy": policy}})
	}
	for _, class := range admission.Classes {
		d.violations[class] = encode(&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{violation(class, policy)}})
	}
	return d
}

// failure returns the QuotaFailure of the policies that had no room.
func (d *details) failure(v *verdict) *anypb.Any {
	parts := v.Parts()
	if len(parts) == 1 {
		return d.violations[parts[0].Class()]
	}
	failure := new(errdetails.QuotaFailure)
	for k := range parts {
		if p := &parts[k]; p.Denied() {
			failure.Violations = append(failure.Violations, violation(p.Class(), p.Name))
		}
	}
	return encode(failure)
}

func violation(class, policy string) *errdetails.QuotaFailure_Violation {
	return &errdetails.QuotaFailure_Violation{Subject: class, Description: "policy " + policy}
}

// encode encodes m. It cannot fail, because all text here is checked UTF-8.
func encode(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic("grpcmw: " + err.Error())
	}
	return a
}
