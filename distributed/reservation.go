package distributed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
)

// The errors of a settlement that changes nothing.
var (
	// ErrSettled reports that an earlier settlement of the reservation had another amount.
	ErrSettled = errors.New("distributed: the reservation is settled")
	// ErrNoReservation reports that the key has no reservation of that id: it was never
	// made, or has expired, and its charge stays.
	ErrNoReservation = errors.New("distributed: there is no such reservation")
)

const maxReservation = 7 * 24 * time.Hour

// Reserve charges n units to key if they fit, as Acquire does, and keeps the charge in Redis
// under id for life, 1 s to 7 days, so that any process that knows key and id can settle it
// with [Limiter.SettleReserved], for example after a crash. Only buckets have reservations.
//
// The same id reserves once: a repetition, because the reply was lost or the process was
// killed, is admitted and charges nothing. If life ends without a settlement, the charge stays.
//
// Reserve needs Redis, because no other process could settle a local decision. The error is
// [ErrUnavailable], after which Redis may have charged: repeat it with the same id; [ErrSettled]
// if the id was used for another amount or is settled; [algo.ErrCost] for a negative n; or the
// error of Redis.
func (l *Limiter) Reserve(ctx context.Context, key, id string, n int64, life time.Duration) (algo.Decision, error) {
	b, err := l.reservable(id, n)
	if err == nil {
		err = within("life", life, time.Second, maxReservation)
	}
	if err != nil {
		return algo.Decision{}, l.errorf("%w", err)
	}
	a := b.acquireArgs("", n)
	a[0], a[4] = opReserve, b.Emission
	if n > b.MaxCost {
		a[3] = b.Depth + b.MaxWait + 1 // denied, unless it was reserved under a larger limit
	}
	r, err := l.reservation(ctx, key, id, a, remote.Args{0, n, life.Microseconds()})
	if err != nil {
		return algo.Decision{}, err
	}
	defer r.Free()
	state, reserved := r.Answer(1).Reply[0], r.Answer(1).Reply[1]
	if state == reservationSettled || state == reservationOpen && reserved != n {
		return algo.Decision{}, l.errorf("%w: id for %d units", ErrSettled, reserved)
	}
	if state == reservationOpen {
		n = 0 // charged before
	}
	d, _ := b.explain(r.Answer(0), n)
	l.store.denied.outdate(r.Keys[0])
	d.Source = algo.SourceRemote
	l.fallback.follow(key, &d)
	return d, nil
}

// SettleReserved corrects the cost of a reservation to actual units, once, as
// [algo.Lease.Settle] does: it refunds less as far as that still weighs, and charges more
// even if it does not fit. A repetition with the same amount changes nothing and returns
// nil, so repeat a settlement whose reply was lost.
//
// The error is [ErrSettled] or [ErrNoReservation], which are logged at most every ten
// seconds and change nothing; [algo.ErrCost] for a negative actual; [ErrUnavailable], after
// which Redis may have settled: repeat it; or the error of Redis.
func (l *Limiter) SettleReserved(ctx context.Context, key, id string, actual int64) error {
	b, err := l.reservable(id, actual)
	if err != nil {
		return l.errorf("%w", err)
	}
	actual = min(actual, decide.MaxBalance) // the record and a repetition agree under every rate
	a := remote.Args{opSettle, b.Depth, b.MaxWait, actual, b.Emission, b.mark()}
	r, err := l.reservation(ctx, key, id, a, remote.Args{})
	if err != nil {
		return err
	}
	defer r.Free()
	defer l.store.denied.drop(l.redisKey(key))
	switch state, was := r.Answer(1).Reply[0], r.Answer(1).Reply[1]; {
	case state == reservationNone:
		return l.misused(ErrNoReservation)
	case state == reservationSettled && was != actual:
		return l.misused(fmt.Errorf("%w: to %d units, not %d", ErrSettled, was, actual))
	}
	return nil
}

func (l *Limiter) reservable(id string, n int64) (*bucket, error) {
	b, ok := l.load().(*bucket)
	switch {
	case !ok:
		return nil, errors.New("only buckets have reservations")
	case n < 0:
		return nil, fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	case id == "":
		return nil, errors.New("the id of a reservation is empty")
	case l.isClosed():
		return nil, ErrClosed
	}
	return b, nil
}

// The states of a reservation before an operation.
const (
	reservationNone    = 0
	reservationOpen    = 1
	reservationSettled = 2
)

// reservation runs an operation on a bucket and the record of id.
func (l *Limiter) reservation(ctx context.Context, key, id string, bucket, record remote.Args) (*remote.Request, error) {
	l.store.registry.start()
	redisKey := l.redisKey(key)
	r := remote.NewPair(bucketScript, redisKey, redisKey+":"+remote.Escape(id), bucket, record)
	if err := l.store.execute(ctx, r, l.kind, l.name); err != nil {
		return nil, err
	}
	if r.Answer(0).Mixed() {
		l.reportMixed()
	}
	return r, nil
}

// misused logs a settlement that changes nothing.
func (l *Limiter) misused(err error) error {
	if l.store.mayLog("wrong settlement") {
		l.store.logger.Warn("distributed: a settlement changed nothing: find out why it came twice, too late, or for an unknown reservation", "limit", l.name, "err", err)
	}
	return l.errorf("%w", err)
}
