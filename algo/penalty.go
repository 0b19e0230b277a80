package algo

import (
	"fmt"
	"time"
)

// penalty is how bans grow and are forgotten. Its state is one word: the
// instant, in ticks, at which everything is forgotten, with the level in the
// bits below a nanosecond. A word that lies in the past is the same as none.
//
// The ban of level k lasts first * 2^(k-1), at most most. Once it is over, the
// level falls by one for each time that the ban of that level lasted.
type penalty struct {
	first, most int64 // ticks
	top         int64 // the lowest level whose ban lasts most
}

// longestBan leaves room for what is remembered after it.
const longestBan = 90 * 24 * time.Hour

const levelMask = ticksPerNano - 1

func newPenalty(ban, longest time.Duration) (penalty, error) {
	switch {
	case ban <= 0:
		return penalty{}, fmt.Errorf("ban is %v, want more than 0", ban)
	case longest < ban:
		return penalty{}, fmt.Errorf("longest ban is %v, want %v (the first ban) or more", longest, ban)
	case longest > longestBan:
		return penalty{}, fmt.Errorf("longest ban is %v, want %v at most", longest, longestBan)
	}
	p := penalty{first: toTicks(ban), most: toTicks(longest), top: 1}
	for p.length(p.top) < p.most {
		p.top++
	}
	return p, nil
}

// length of the ban of a level, 1 to top.
func (p *penalty) length(level int64) int64 {
	if l := p.first << (level - 1); l < p.most {
		return l
	}
	return p.most
}

// memory is how long it takes to fall from a level to none: the sum of the
// lengths up to it.
func (p *penalty) memory(level int64) int64 {
	if level < p.top {
		return p.first<<level - p.first
	}
	return p.first<<(p.top-1) - p.first + p.most
}

// read returns the level at now, and when the ban ends, if it has not.
func (p *penalty) read(word, now int64) (level, until int64) {
	level = word & levelMask
	forgotten := word - level
	if forgotten <= now {
		return 0, 0
	}
	if until = forgotten - p.memory(level); until > now {
		return level, until
	}
	for level > 0 && forgotten-now <= p.memory(level-1) {
		level--
	}
	return level, 0
}

// ban returns the word and the end of the next ban.
func (p *penalty) ban(word, now int64) (next, until int64) {
	level, _ := p.read(word, now)
	level = min(level+1, p.top)
	until = now + p.length(level)
	return (until + p.memory(level)) | level, until
}

// strikes counts denials in one word: when the count ends, in milliseconds, and
// the count.
type strikes struct {
	limit  int64
	period int64 // ms
}

const (
	strikeBits  = 20
	mostStrikes = 1<<strikeBits - 1
	ticksPerMs  = int64(time.Millisecond) << tickShift
)

func newStrikes(r Rate) (strikes, error) {
	switch {
	case r.Count < 1 || r.Count > mostStrikes:
		return strikes{}, fmt.Errorf("denials: count is %d, want 1 to %d", r.Count, mostStrikes)
	case r.Period < time.Millisecond || r.Period > maxSpan:
		return strikes{}, fmt.Errorf("denials: period is %v, want %v to %v", r.Period, time.Millisecond, maxSpan)
	}
	return strikes{r.Count, int64((r.Period + time.Millisecond - 1) / time.Millisecond)}, nil
}

// toMs counts milliseconds from 1: the word 0 stands for never used.
func toMs(ticks int64) int64 { return ticks/ticksPerMs + 1 }

// horizon is the word below which counts have ended.
func (s *strikes) horizon(now int64) int64 { return toMs(now) << strikeBits }

// strike adds one denial and reports whether it is the last straw, after which
// the count begins again.
func (s *strikes) strike(word, now int64) (next int64, out bool) {
	ms := toMs(now)
	end, count := word>>strikeBits, word&mostStrikes
	if end <= ms {
		end, count = ms+s.period, 0
	}
	if count++; count >= s.limit {
		return ms << strikeBits, true // which has ended: the next one is the first again
	}
	return end<<strikeBits | count, false
}
