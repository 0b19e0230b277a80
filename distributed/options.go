package distributed

import (
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/option"
)

// Option configures a store. An option that is given twice is an error.
type Option struct {
	name  string
	apply func(*settings) error
}

type settings struct {
	timeout       time.Duration
	prefix        string
	fallback      Fallback
	instances     int // 0: counted in Redis
	assumed       int // instances, until they have been counted
	service       string
	denyCache     int
	blocks        int64         // largest excess that blocks may cause; 0: no blocks
	probeInterval time.Duration // the least time between two probes of a node that is away
	logger        *slog.Logger
	hook          func(Event)
}

func configure(opts []Option) (settings, error) {
	s := settings{
		timeout:       20 * time.Millisecond,
		prefix:        "sluice",
		assumed:       16,
		denyCache:     10_000,
		probeInterval: time.Second,
		logger:        slog.Default(),
	}
	if err := option.Apply(&s, opts, Option.split, nil); err != nil {
		return s, fmt.Errorf("distributed: %w", err)
	}
	return s, nil
}

func (o Option) split() (string, func(*settings) error) { return o.name, o.apply }

// WithTimeout sets how long a decision waits for Redis, 1 ms to 1 min; the default is 20 ms. Then
// the fallback decides; a caller whose context ends before is denied. Where this process itself
// lacks CPU, and Redis has answered lately, it waits on: until its context ends, for at most ten
// timeouts, or a second if that is more. The client's own timeouts may be longer: they bound how
// long a connection waits for a late reply.
func WithTimeout(d time.Duration) Option {
	return Option{"WithTimeout", func(s *settings) error {
		s.timeout = d
		return want(d >= time.Millisecond && d <= time.Minute, "is %v, want 1ms to 1m", d)
	}}
}

// WithPrefix sets the beginning of all keys in Redis, "sluice" by default, as it is written:
// "shop:eu" makes keys that begin with "shop:eu:{", and the pattern of an ACL is ~shop:eu:*.
// Instances with the same prefix share their limits. A prefix with a hash tag, such as
// "{shop}", puts all keys in one slot, so one node of a cluster decides all limits. Other braces and
// control characters are an error.
func WithPrefix(prefix string) Option {
	return Option{"WithPrefix", func(s *settings) error {
		s.prefix = prefix
		return want(prefixes.MatchString(prefix), "is %q, want text without control characters, with at most one {tag}", prefix)
	}}
}

// prefixes have at most one pair of braces. The tag of a key and its limit, which follow, are
// escaped, so keys of two prefixes differ.
var prefixes = regexp.MustCompile(`^([^[:cntrl:]{}]+|[^[:cntrl:]{}]*\{[^[:cntrl:]{}]+\}[^[:cntrl:]{}]*)$`)

// Fallback is how limits decide while Redis is away. Such decisions have the
// Source [algo.SourceFallback]. They are never errors, and a denial that does
// not come from a limit has the Reason Overload.
type Fallback uint8

const (
	// FallbackLocal divides rate R and burst B of each limit by the number N of instances;
	// each instance keeps its share, at least one unit, in the process. A cost that fits the
	// limit but not the share is saved for at R/N: its RetryAfter says how long. All
	// instances together admit at most max(B, N) + R*t in a time t since Redis went away. The
	// local limiters are kept as full as the shared ones, so the change to local decisions
	// grants no fresh burst. The log names limits smaller than N, where N exceeds the burst.
	FallbackLocal Fallback = iota
	// FallbackAllow admits everything: availability matters more than the limit.
	FallbackAllow
	// FallbackDeny denies everything: the limit protects a fragile resource. A call of 0 units is
	// admitted; what its lease is settled to is charged when Redis answers.
	FallbackDeny
)

// String returns the policy's name.
func (f Fallback) String() string {
	return nameOf(int(f), "FallbackLocal", "FallbackAllow", "FallbackDeny")
}

// WithFallback sets how limits decide while Redis is away; the default is
// [FallbackLocal].
func WithFallback(f Fallback) Option {
	return Option{"WithFallback", func(s *settings) error {
		s.fallback = f
		return want(f <= FallbackDeny, "is %d, want FallbackLocal, FallbackAllow or FallbackDeny", f)
	}}
}

// WithInstances fixes the number of instances among which [FallbackLocal] divides
// the limits, 1 or more. By default they are counted in Redis, and the last count
// holds while Redis is away; see [WithAssumedInstances] for an instance that has
// not been counted yet. If some instances are cut off and others are not, the others
// take larger shares after about 20 s: cut off one after another, N instances admit
// together 1 + 1/2 + ... + 1/N times the limit.
func WithInstances(n int) Option {
	return Option{"WithInstances", func(s *settings) error {
		s.instances = n
		return want(n >= 1, "is %d, want 1 or more", n)
	}}
}

// WithAssumedInstances sets the number of instances that an instance assumes until it has been
// counted, 1 or more; the default is 16. Until then, about four seconds after its first decision,
// its share while Redis is away is this part of each limit; or the part of the last number of
// instances, if Redis still knows that. An instance that never reaches Redis keeps this share.
func WithAssumedInstances(n int) Option {
	return Option{"WithAssumedInstances", func(s *settings) error {
		s.assumed = n
		return want(n >= 1, "is %d, want 1 or more", n)
	}}
}

// WithService names the service that this instance belongs to, up to 200 bytes.
// The instances of a service count each other; limits of one name are shared by all services
// of the prefix: [WithPrefix] keeps those apart. By default all instances with the
// same prefix do: right if they share their limits, and too many if several
// services with limits of their own use one Redis.
func WithService(name string) Option {
	return Option{"WithService", func(s *settings) error {
		s.service = remote.Escape(name)
		return want(len(name) <= remote.MaxTag, "has %d bytes, want at most %d", len(name), remote.MaxTag)
	}}
}

// WithBlocks lets this process spend busy keys of token and leaky buckets from
// prepaid blocks, so that most decisions about them need no round trip. It is off by
// default: every decision is exact.
//
// Bound: in any window of length w all instances together admit at most
// Burst + rate*w + maxExcess units of a key, and Burst + rate*w in the long run,
// also when instances crash; maxExcess is 1 or more, and the same for all
// instances. With n instances a block has maxExcess/(2*n) units, with
// [WithInstances] maxExcess/n; a block of less than one unit means no blocks.
// Near the limit no blocks are taken and decisions are exact. Decisions from a
// block have the Source [algo.SourceBlock]; their Remaining includes the spending
// of other instances up to the last second. Limits with a MaxWait are always
// exact.
func WithBlocks(maxExcess int64) Option {
	return Option{"WithBlocks", func(s *settings) error {
		s.blocks = maxExcess
		return want(maxExcess >= 1, "is %d, want 1 or more", maxExcess)
	}}
}

// WithDenyCache sets about how many denied keys of buckets, fixed windows and sliding
// windows are remembered, 0 to 1e7; the default is 10000, 0 turns it off. A denial that an
// earlier one proves is answered without Redis, with the Source [algo.SourceDenyCache], for
// at most a second. The answers are exact, except that units which other instances give
// back, reset or raise meanwhile are not seen, nor a step of the server's clock; and RetryAfter
// leaves out what other instances charge meanwhile, where a smaller cost still fits.
func WithDenyCache(n int) Option {
	return Option{"WithDenyCache", func(s *settings) error {
		const largest = 10_000_000
		s.denyCache = n
		return want(n >= 0 && n <= largest, "is %d, want 0 to %d", n, largest)
	}}
}

// WithLogger sets where failures are logged, each kind at most every ten
// seconds. The default is slog.Default. Keys are not logged, unless a message of
// the server quotes them.
func WithLogger(l *slog.Logger) Option {
	return Option{"WithLogger", func(s *settings) error {
		s.logger = l
		return option.NotNil(l != nil)
	}}
}

// WithHook sets a function that receives changes, for metrics. It is called on
// the goroutine that meets the change, so it must be quick, safe for concurrent
// use, and must not close the store.
func WithHook(hook func(Event)) Option {
	return Option{"WithHook", func(s *settings) error {
		s.hook = hook
		return option.NotNil(hook != nil)
	}}
}

func within(field string, d, from, to time.Duration) error {
	return want(d >= from && d <= to, "%s is %v, want %v to %v", field, d, from, to)
}

// want returns the error of a value that is not good.
func want(good bool, format string, args ...any) error {
	if good {
		return nil
	}
	return fmt.Errorf(format, args...)
}
