package grpcmw

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Option adjusts an interceptor when it is made. An option that a constructor
// does not take, and a value out of range, is a panic that names both.
type Option struct {
	name  string
	apply func(*settings) error
}

// settings is what options write to.
type settings struct {
	name           string
	domain         string
	cost           Cost
	exempt         []string
	noDefaults     bool
	onError        FailPolicy
	missing        MissingKey
	observer       func(Event)
	leaseInContext bool
	mode           StreamMode
	maxWait        time.Duration // of calls and openings of streams
	backPressure   time.Duration // of messages
	retryReserve   float64
	rateTrailers   bool
	registered     func() map[string]struct{}
}

// Cost is the number of units that a call costs. 0 charges nothing and is
// always admitted; a negative cost is refused with UNAVAILABLE. msg is the
// request of a unary call, the message of a stream that is charged by message,
// and nil when a stream is opened. It must not be kept or changed.
type Cost func(ctx context.Context, fullMethod string, msg any) int64

// WithName sets the policy's name, which clients see in the details of a
// denial: 1 to 64 letters, digits, dots, underscores and hyphens. The default
// is made from the limit at the time of construction ("100-per-60s"), or is
// "default" if there is none then or the limiter cannot tell.
func WithName(name string) Option {
	return Option{"WithName", func(s *settings) error {
		s.name = name
		return checkName(name)
	}}
}

// WithDomain sets the domain of the ErrorInfo detail, for example the name of
// the service that clients know. The default is "sluice".
func WithDomain(domain string) Option {
	return Option{"WithDomain", func(s *settings) error {
		s.domain = domain
		return checkName(domain)
	}}
}

// WithCost sets what a call costs. The default is 1.
func WithCost(cost Cost) Option {
	return Option{"WithCost", func(s *settings) error {
		s.cost = cost
		return notNil(cost == nil)
	}}
}

// WithObserver sets a function that is called once for each decision, in the
// goroutine of the call. It must return quickly and may be called from many
// goroutines at once.
func WithObserver(observe func(Event)) Option {
	return Option{"WithObserver", func(s *settings) error {
		s.observer = observe
		return notNil(observe == nil)
	}}
}

// WithLeaseInContext makes the lease available to the handler through
// [LeaseFrom]. It costs two allocations a call.
func WithLeaseInContext() Option {
	return Option{"WithLeaseInContext", func(s *settings) error {
		s.leaseInContext = true
		return nil
	}}
}

func notNil(isNil bool) error {
	if isNil {
		return fmt.Errorf("is nil")
	}
	return nil
}

// The options that each kind of interceptor takes.
var (
	anywhere         = []string{"WithName", "WithExempt", "WithoutDefaultExempt", "WithMissingKey", "WithObserver"}
	charging         = append(slices.Clone(anywhere), "WithDomain", "WithCost", "WithOnError")
	onServer         = append(slices.Clone(charging), "WithLeaseInContext", "WithRetryReserve", "WithRateTrailers")
	forStreams       = append(slices.Clone(onServer), "WithStreamMode", "WithBackPressure")
	onClient         = append(slices.Clone(charging), "WithMaxWait")
	forClientStreams = append(slices.Clone(onClient), "WithStreamMode")
	onTap            = append(slices.Clone(anywhere), "WithDomain", "WithRetryReserve", "WithRegistered")
)

// configure applies opts; whoever wires a server reads the panic.
func configure(constructor string, takes []string, opts []Option) settings {
	s := settings{domain: "sluice", missing: Shared, onError: FailClosed, mode: OnOpen}
	for _, o := range opts {
		switch {
		case o.apply == nil:
			misuse(constructor, "the zero Option is not an option")
		case !slices.Contains(takes, o.name):
			misuse(constructor, "does not take the option "+o.name+", only "+strings.Join(takes, ", "))
		}
		if err := o.apply(&s); err != nil {
			misuse(constructor, o.name+": "+err.Error())
		}
	}
	if s.backPressure > 0 && !s.mode.has(PerRecv|PerSend) {
		misuse(constructor, "WithBackPressure: concerns messages, and WithStreamMode charges none")
	}
	return s
}

// misuse is how every mistake of wiring ends.
func misuse(constructor, what string) { panic("grpcmw: " + constructor + ": " + what) }
