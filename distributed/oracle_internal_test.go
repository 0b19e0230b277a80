package distributed

import (
	"math"

	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
)

// bucketOracle is one key as bucket.lua should keep it, decided by
// [decide.GCRA].
type bucketOracle struct {
	tat, account, voided int64
	mark                 int64 // of the parameters that wrote tat
	later, laterMark     int64 // for other parameters; 0: tat
	bannedUntil          int64
	aliveUntil           int64 // the key's expiry; 0: there is none
}

// bucketStep is one operation on a bucket.
type bucketStep struct {
	op     int64
	gcra   *decide.GCRA
	n      int64
	charge decide.Charge // of a refund or a forced charge
	mark   int64         // of the charge
	long   int64         // of a ban
}

// args are the script's arguments for the step.
func (s bucketStep) args() remote.Args {
	b := bucketOf(s.gcra)
	switch s.op {
	case opRefund:
		return b.refundArgs(handle(s.charge, s.mark), s.n)
	case opGiveBack:
		return b.giveBackArgs("", s.n)
	case opForce:
		return b.forceArgs("", handle(s.charge, s.mark), s.n)
	case opReset:
		return b.resetArgs("")
	case opBan:
		return remote.Args{opBan, s.long}
	}
	return b.acquireArgs("", s.n)
}

func bucketOf(g *decide.GCRA) *bucket { return &bucket{gcra: g, Params: g.Params()} }

// run does the same as bucket.lua and returns its reply.
func (o *bucketOracle) run(s bucketStep, now int64) (tat, account, flag int64) {
	if o.bannedUntil > 0 && o.bannedUntil <= now {
		o.tat, o.bannedUntil = 0, 0
	}
	if o.bannedUntil > 0 {
		return o.whileBanned(s, now)
	}
	switch s.op {
	case opAcquire:
		return o.acquire(s, now)
	case opRefund:
		tat, account = o.tat, o.account
		if mark := s.mark; mark >= o.voided && mark <= o.account {
			next, given := s.gcra.Refund(o.tat, s.charge, now, s.n, o.account-mark)
			if given > 0 {
				o.owe(now, next)
				o.tat, o.account = next, o.account+given
				o.keep(now, math.MaxInt64-now)
			}
		}
		return tat, account, flagDenied
	case opGiveBack:
		was := *o
		_, longest, mark, _ := o.load(s, now)
		tat = o.tat
		given := max(min(s.n*s.gcra.Params().Emission, tat-now), 0)
		if given == 0 {
			*o = was
		} else {
			o.owe(now, tat-given)
			o.tat, o.account, o.mark = tat-given, o.account+given, mark
			o.keep(now, longest)
		}
		return tat, given, flagDenied
	case opForce:
		b := bucketOf(s.gcra)
		_, longest, mark, _ := o.load(s, now)
		tat, account = o.tat, o.account
		next, largest := max(tat, now)+min(s.n, b.MaxDebt/b.Emission+1)*b.Emission, max(now+b.MaxDebt, tat)
		o.void(next > largest || b.Emission < s.charge.B)
		o.owe(now, min(next, largest))
		o.tat, o.mark = min(next, largest), mark
		o.keep(now, longest)
		return tat, account, flagDenied
	case opReset:
		tat, account = o.tat, o.account
		o.reset(s, now)
		return tat, account, flagDenied
	}
	account = o.account
	return o.ban(s, now), account, flagBanned
}

// at returns what the key may be at now. The server keeps time to live in
// milliseconds of a clock that goes on while the script runs: around the expiry
// only the server knows whether the key is still there. A ban ends on time.
func (o bucketOracle) at(now int64) []bucketOracle {
	const rounding, banRounding = 200_000, 2000
	var all []bucketOracle
	if o.aliveUntil < now+rounding && o.bannedUntil < now+banRounding {
		all = append(all, bucketOracle{})
	}
	if o.aliveUntil > now-rounding {
		all = append(all, o)
	}
	return all
}

func (o *bucketOracle) acquire(s bucketStep, now int64) (tat, account, flag int64) {
	was := *o
	clamped, longest, mark, flag := o.load(s, now)
	tat, account = o.tat, o.account
	next, v, _ := s.gcra.Answer(tat, now, s.n)
	if v.Allowed {
		flag += flagAdmitted
	}
	if !clamped && next == tat {
		*o = was
		return tat, account, flag
	}
	o.owe(now, next)
	o.tat, o.mark = next, mark
	o.keep(now, longest)
	return tat, account, flag
}

// load clamps a TAT that is implausible. Under other parameters than those that wrote it, the
// debt is at most that of a key which has just spent everything.
func (o *bucketOracle) load(s bucketStep, now int64) (clamped bool, longest, mark, flag int64) {
	b := bucketOf(s.gcra)
	longest, mark = b.MaxDebt, b.mark()
	most := now + longest
	if debt := max(o.tat, o.later); debt > now && o.mark != mark {
		flag = remote.FlagMixed
		if o.later <= o.tat {
			o.later, o.laterMark = o.tat, o.mark
		}
		longest = max(longest, spanOf(o.laterMark))
		o.later = min(o.later, now+longest)
		o.tat, most = o.later, now+b.Depth+b.MaxWait
	}
	if clamped = o.tat > most; clamped {
		o.void(true)
		o.tat = most
	}
	return clamped, longest, mark, flag
}

// owe adds to the later TAT what moves tat to next.
func (o *bucketOracle) owe(now, next int64) {
	if o.later > 0 {
		o.later = max(o.later, now) + next - max(o.tat, now)
	}
}

func (o *bucketOracle) whileBanned(s bucketStep, now int64) (ends, account, flag int64) {
	ends, account = o.bannedUntil, o.account
	switch s.op {
	case opGiveBack:
		account = 0
	case opReset:
		o.reset(s, now)
	case opBan:
		o.tat = ends
		ends = o.ban(s, now)
	}
	return ends, account, flagBanned
}

func (o *bucketOracle) ban(s bucketStep, now int64) (ends int64) {
	ends = max(o.tat, now+s.long)
	o.void(o.account > 0)
	o.later = 0
	o.bannedUntil = ends
	if o.account == 0 {
		o.aliveUntil = ends
	}
	o.aliveUntil = max(ends, o.aliveUntil)
	return ends
}

func (o *bucketOracle) reset(s bucketStep, now int64) {
	p := s.gcra.Params()
	if o.aliveUntil > 0 {
		o.void(true)
		o.later = 0
		o.tat, o.bannedUntil, o.aliveUntil = now, 0, min(o.aliveUntil, now+max(p.MaxDebt, spanOf(o.mark)))
	}
}

func (o *bucketOracle) void(yes bool) {
	if yes {
		o.account++
		o.voided = o.account
	}
}

// keep is the expiry after a write.
func (o *bucketOracle) keep(now, longest int64) {
	if o.later <= max(o.tat, now) {
		o.later = 0
	} else {
		longest = math.MaxInt64 - now
	}
	switch last := max(o.tat, o.later); {
	case o.account > 0:
		o.aliveUntil = min(max(o.aliveUntil, last), now+longest)
	case last > now:
		o.aliveUntil = last
	default:
		*o = bucketOracle{}
	}
}

// spanOf is the longest span of the limits with a mark.
func spanOf(mark int64) int64 {
	s := mark / 5
	return (4 + s%4) << (s / 4)
}
