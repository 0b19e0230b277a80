package distributed

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
)

// Ban bans keys that keep exceeding their limit, in all instances; see [NewBan].
type Ban struct {
	limiter *Limiter
	args    remote.Args // of the record of a key
}

// banScripts caches the results of banScript by the limit's script.
var banScripts sync.Map

// banScript returns s with bans: it makes the source of s a function of the keys and the
// arguments.
func banScript(s *remote.Script) *remote.Script {
	if known, ok := banScripts.Load(s); ok {
		return known.(*remote.Script)
	}
	made, _ := banScripts.LoadOrStore(s, remote.NewScript(s.Name+" with bans", func() string {
		_, body, _ := strings.Cut(s.Source(), lua("prelude"))
		return fmt.Sprintf("%slocal function decide(KEYS, ARGV)\n%s\nend\nlocal ARGS, REPLIES = %d, %d\n%s", prelude(), body, s.Args, s.Replies, lua("ban"))
	}, s.Args, s.Replies))
	return made.(*remote.Script)
}

// NewBan bans keys of l that keep exceeding it, in all instances that wrap the limit of that
// name. It has the arguments, rules and answers of [guard.NewBan], and counts denials of the
// quota over all instances. It takes every algorithm, except limits on units in flight,
// because their denials are not about a quota.
//
// The script of the decision reads and writes the record of a key, so a ban costs no round
// trip. The record is a Redis key of about 100 bytes that expires when the ban is
// forgotten. An instance answers for a known ban without Redis, and asks again every second,
// as far as [WithDenyCache] has room. All other decisions go to Redis; neither earlier
// denials nor blocks answer them.
//
// While Redis is away, the fallback of l decides: denials are not counted, and bans that
// this instance knows last until they end. If the server's clock steps back, a ban ends
// at most the longest ban later. Instances with different arguments count by their own.
//
// The error names the argument, or the kind of l.
func NewBan(l *Limiter, denials algo.Rate, first, longest time.Duration) (*Ban, error) {
	if l == nil {
		return nil, fmt.Errorf("distributed: ban: the limiter is nil")
	}
	if l.slots != nil {
		return nil, l.errorf("ban: units in flight have no quota: want another limit")
	}
	if err := decide.CheckBan(denials.Count, denials.Period, first, longest); err != nil {
		return nil, l.errorf("%w", err)
	}
	microsecond := func(d time.Duration) int64 { return max(d.Microseconds(), 1) }
	return &Ban{l, remote.Args{opAcquire, denials.Count, microsecond(denials.Period), microsecond(first), microsecond(longest)}}, nil
}

// About describes the limit.
func (b *Ban) About() algo.Description { return b.limiter.About() }

// Acquire denies a banned key. For other keys the limit decides, and its denials are
// counted; see [algo.Limiter] and [Limiter.Acquire].
func (b *Ban) Acquire(ctx context.Context, key string, n int64) (lease algo.Lease, err error) {
	l := b.limiter
	if n < 0 || key == "" || l.isClosed() { // the empty key is shared by all callers
		return l.Acquire(ctx, key, n)
	}
	b.decide(call{ctx: ctx, key: key, redisKey: l.redisKey(key), n: n, limit: l.load()}, &lease)
	return lease, nil
}

// Peek returns the answer of Acquire, and counts and charges nothing. For the denial that
// would cause a ban it returns the limit's answer.
func (b *Ban) Peek(ctx context.Context, key string, n int64) (algo.Decision, error) {
	l := b.limiter
	if n < 0 || key == "" || l.isClosed() {
		return l.Peek(ctx, key, n)
	}
	var lease algo.Lease
	b.decide(call{ctx: ctx, key: key, redisKey: l.redisKey(key), n: n, limit: l.load(), look: true}, &lease)
	return lease.Decision, nil
}

func (b *Ban) decide(c call, lease *algo.Lease) {
	l := b.limiter
	l.store.registry.start()
	record := b.record(c.key)
	known, fresh := l.store.denied.banned(record)
	switch {
	case fresh:
		lease.Decision = b.denial(known, algo.SourceDenyCache)
	case b.remote(c, record, lease):
		if known > 0 && lease.Reason != algo.Banned { // lifted
			l.store.denied.drop(record)
		}
	case known > 0:
		lease.Decision = b.denial(known, algo.SourceFallback)
	default:
		l.fallback.acquire(c, lease)
	}
}

// remote asks Redis. It reports false if there is no answer.
func (b *Ban) remote(c call, record string, lease *algo.Lease) bool {
	l := b.limiter
	c.corrections = l.store.denied.corrections(c.redisKey)
	lifted := l.store.denied.corrections(record)
	ban := b.args
	if c.look || algo.IsTentative(c.ctx) {
		ban[1] = 0
	}
	r := remote.NewPair(banScript(c.limit.script()), c.redisKey, record, c.args(0), ban)
	r.Name, r.Limit, r.N, r.Undo = l.name, c.limit, c.charge(0), (*banUndo)(b)
	if !l.store.remote.Do(c.ctx, r) {
		return false
	}
	defer r.Free()
	if r.Err != nil || r.Answer(0).Flag() == flagWrongType || r.Answer(1).Flag() == flagWrongType {
		l.reportKeyFault(r)
		return false
	}
	if r.Answer(0).Mixed() {
		l.reportMixed()
	}
	asked, left := banOf(r)
	if asked {
		l.fillLease(lease, r, c)
	}
	if left > 0 {
		l.store.denied.noteBan(record, r, lifted)
	}
	if left > lease.RetryAfter {
		lease.Decision = b.denial(left, algo.SourceRemote)
	}
	return true
}

// banOf reads the reply about a record: asked reports whether the limit decided, left is the
// rest of the ban.
func banOf(r *remote.Request) (asked bool, left time.Duration) {
	a := r.Answer(1)
	return a.Reply[1] == 1, micros(a.Reply[0] - a.Now)
}

// banUndo keeps UndoCharge out of Ban's public methods.
type banUndo Ban

// UndoCharge refunds a charge whose caller has stopped waiting.
func (b *banUndo) UndoCharge(r *remote.Request) {
	if asked, _ := banOf(r); asked {
		(*releaser)(b.limiter).UndoCharge(r)
	}
}

// record returns the Redis key of key's record. No limit's name ends in ::ban.
func (b *Ban) record(key string) string { return b.limiter.redisKey(key) + "::ban" }

// denial returns the decision on a key whose ban lasts for left.
func (b *Ban) denial(left time.Duration, from algo.Source) algo.Decision {
	return algo.Decision{
		Reason: algo.Banned, Limit: b.limiter.load().describe().Quota,
		RetryAfter: left, NextAfter: left, ResetAfter: left, Source: from,
	}
}

// Banned returns the rest of key's ban; 0 without a ban. The error is
// [ErrUnavailable], or the error of Redis.
func (b *Ban) Banned(ctx context.Context, key string) (left time.Duration, err error) {
	lim := b.limiter.load()
	return left, b.execute(ctx, key, lim.acquireArgs(key, 0), b.args, func(r *remote.Request) { _, left = banOf(r) })
}

// Reset lifts the ban of key and forgets its denials and earlier bans, in all instances,
// within a second. The key's debt stays; see [Limiter.Reset]. The error is
// [ErrUnavailable], or the error of Redis.
func (b *Ban) Reset(ctx context.Context, key string) error {
	return b.execute(ctx, key, remote.Args{}, remote.Args{opReset}, func(*remote.Request) { b.limiter.store.denied.drop(b.record(key)) })
}

// execute runs a command that needs Redis, and passes the reply to done.
func (b *Ban) execute(ctx context.Context, key string, a, ban remote.Args, done func(*remote.Request)) error {
	l := b.limiter
	switch {
	case l.isClosed():
		return ErrClosed
	case key == "":
		return nil // never banned
	}
	r := remote.NewPair(banScript(l.load().script()), l.redisKey(key), b.record(key), a, ban)
	err := l.store.execute(ctx, r, "ban of "+l.kind, l.name)
	if err == nil {
		done(r)
		r.Free()
	}
	return err
}
