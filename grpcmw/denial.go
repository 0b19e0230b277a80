package grpcmw

import (
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
)

// denial is the error of a refused call on the server. To gRPC and to other
// interceptors it is the status; limiters further out know it by its type.
type denial struct {
	status   *status.Status
	pushback int32
	begun    bool // a message was refused: the handler had begun
}

// Error is the text that an error of package status would have.
func (d *denial) Error() string { return d.status.String() }

// denialIn finds the denial in the error of a call, nil if it is another error.
func denialIn(err error) *denial {
	var d *denial
	errors.As(err, &d)
	return d
}

// GRPCStatus is what the client receives.
func (d *denial) GRPCStatus() *status.Status { return d.status }

// The texts that clients see. None depends on what a client sent.
const (
	textQuota    = "rate limit exceeded"
	textNever    = "the call costs more than its rate limit can ever admit"
	textTooLate  = "rate limit exceeded: the wait would outlast the deadline"
	textKeyless  = "rate limit exceeded: the caller could not be identified"
	textOverload = "the server cannot take the call at the moment"
)

// reply is a refusal before it is encoded.
type reply struct {
	code  codes.Code    // ResourceExhausted or Unavailable
	text  string        // one of the texts above
	class string        // of the key, for ResourceExhausted
	wait  time.Duration // until it makes sense to try again; algo.Forever: never
}

// replyTo turns a denial by the limiter into words.
func replyTo(d *algo.Decision, key string) reply {
	r := reply{code: codes.ResourceExhausted, text: textQuota, class: classOf(key), wait: waitFor(d)}
	switch d.Reason {
	case algo.Overload:
		r.code, r.text = codes.Unavailable, textOverload
	case algo.Never:
		r.text = textNever
	}
	return r
}

// waitFor is how long a denied caller should wait. A limiter that gives no
// time must not make callers come back at once.
func waitFor(d *algo.Decision) time.Duration {
	switch {
	case d.Reason == algo.Never:
		return algo.Forever
	case d.RetryAfter <= 0:
		return unstated
	}
	return d.RetryAfter
}

// answers are the details of denials that stay the same, encoded once.
type answers struct {
	prefix          string // of all texts
	quota, overload *anypb.Any
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
		violations: make(map[string]*anypb.Any),
	}
	for _, class := range classes {
		a.violations[class] = encode(&errdetails.QuotaFailure{
			Violations: []*errdetails.QuotaFailure_Violation{{Subject: class, Description: "policy " + policy}},
		})
	}
	return a
}

// status encodes a reply. wait is the reply's with jitter.
func (a *answers) status(r reply, wait time.Duration) *status.Status {
	s := &spb.Status{Code: int32(r.code), Message: a.prefix + r.text}
	if r.code == codes.Unavailable {
		s.Details = append(s.Details, a.overload)
	} else {
		s.Details = append(s.Details, a.quota, a.violations[r.class])
	}
	if r.wait != algo.Forever {
		s.Details = append(s.Details, encode(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)}))
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
