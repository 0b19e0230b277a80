package guard

import (
	"time"

	"github.com/sluice-go/sluice/internal/keystore"
)

// banDuration computes the growth and the expiry of bans. A key's state is one word: the instant,
// in ticks, at which everything is forgotten, with the level in the bits below a nanosecond. A word
// in the past is equivalent to none.
//
// The ban of level k lasts first * 2^(k-1), up to longest. After it, the level falls by one each
// time the length of that level's ban passes.
type banDuration struct {
	first, longest int64 // ticks
	top            int64 // the lowest level whose ban lasts longest
}

const levelMask = keystore.TicksPerNano - 1

func newBanDuration(first, longest time.Duration) banDuration {
	b := banDuration{first: keystore.ToTicks(first), longest: keystore.ToTicks(longest), top: 1}
	for b.length(b.top) < b.longest {
		b.top++
	}
	return b
}

// length returns the length of the ban of a level, 1 to top.
func (b *banDuration) length(level int64) int64 {
	if l := b.first << (level - 1); l < b.longest {
		return l
	}
	return b.longest
}

// memory returns the time to fall from a level to none: the sum of the lengths up to it.
func (b *banDuration) memory(level int64) int64 {
	if level < b.top {
		return b.first<<level - b.first
	}
	return b.first<<(b.top-1) - b.first + b.longest
}

// read returns the level at now, and the end of the ban if it still runs.
func (b *banDuration) read(word, now int64) (level, until int64) {
	level = word & levelMask
	forgotten := word - level
	if forgotten <= now {
		return 0, 0
	}
	if until = forgotten - b.memory(level); until > now {
		return level, until
	}
	for level > 0 && forgotten-now <= b.memory(level-1) {
		level--
	}
	return level, 0
}

// ban returns the word and the end of the next ban.
func (b *banDuration) ban(word, now int64) (next, until int64) {
	level, _ := b.read(word, now)
	level = min(level+1, b.top)
	until = now + b.length(level)
	return (until + b.memory(level)) | level, until
}
