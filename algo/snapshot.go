package algo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"time"

	"github.com/sluice-go/sluice/internal/interleave"
)

// ErrSnapshot reports data that is not a snapshot, or not of this kind of
// limiter.
var ErrSnapshot = errors.New("algo: not a usable snapshot")

// A snapshot is:
//
//	magic, with the version of this layout
//	uvarint and bytes     the kind of limiter
//	8 bytes, big endian   when it was taken, ns since 1970
//	for each key          uvarint and bytes of the key, uvarint debt in ns
//	4 bytes, big endian   CRC-32C of all before
//
// Wall-clock time appears here only: debts are spans, and the time that passed
// between taking and restoring is taken off them.
const snapshotMagic = "sluice\x001"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// saved is what one key owes.
type saved struct {
	key  string
	debt time.Duration
}

func encodeSnapshot(kind string, taken time.Time, debts iter.Seq[saved]) []byte {
	b := []byte(snapshotMagic)
	b = appendString(b, kind)
	b = binary.BigEndian.AppendUint64(b, uint64(taken.UnixNano()))
	for s := range debts {
		b = appendString(b, s.key)
		b = binary.AppendUvarint(b, uint64(s.debt))
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decodeSnapshot returns what is owed now. It reads everything before it
// returns anything.
func decodeSnapshot(data []byte, kind string, now time.Time) ([]saved, error) {
	const sum = 4
	if len(data) < len(snapshotMagic)+sum || !bytes.HasPrefix(data, []byte(snapshotMagic)) {
		return nil, fmt.Errorf("%w: it does not begin as one", ErrSnapshot)
	}
	body := data[:len(data)-sum]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(data[len(body):]) {
		return nil, fmt.Errorf("%w: the checksum is wrong", ErrSnapshot)
	}
	r := reader{rest: body[len(snapshotMagic):]}
	if of := r.string(); !r.bad && of != kind {
		return nil, fmt.Errorf("%w: it is of a %.40q, want %q", ErrSnapshot, of, kind)
	}
	elapsed := r.since(now)
	var owed []saved
	for len(r.rest) > 0 && !r.bad {
		s := saved{r.string(), r.duration()}
		if s.debt > elapsed {
			s.debt -= elapsed
			owed = append(owed, s)
		}
	}
	if r.bad {
		return nil, fmt.Errorf("%w: it is malformed", ErrSnapshot)
	}
	return owed, nil
}

// reader takes values off rest. After the first that is malformed it is bad,
// and stays so.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.rest)) {
		r.bad = true
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.take(uint64(n))
	return v
}

func (r *reader) string() string { return string(r.take(r.uvarint())) }

// duration reads a span of 0 or more.
func (r *reader) duration() time.Duration {
	v := r.uvarint()
	if v > uint64(Forever) {
		r.bad = true
		return 0
	}
	return time.Duration(v)
}

// since reads an instant and returns how long it is ago, 0 if the wall clock
// has been set back behind it.
func (r *reader) since(now time.Time) time.Duration {
	b := r.take(8)
	if r.bad {
		return 0
	}
	taken := int64(binary.BigEndian.Uint64(b))
	if taken < 0 {
		r.bad = true // before 1970
		return 0
	}
	return max(now.Sub(time.Unix(0, taken)), 0)
}

// Snapshot returns what the given keys and the empty one owe, so that it
// survives a restart: Restore reads it in the next process. The keys are the
// caller's to know, because a limiter keeps only fingerprints of them, which
// mean nothing elsewhere; nil stands for none. Keys that owe nothing take no
// room, and a key that shares a word with others because the table was full is
// saved with all that is owed there.
//
// The data holds the keys as they are, and a checksum against damage, none
// against forgery.
func (b *bucket) Snapshot(keys iter.Seq[string]) []byte {
	taken := b.words.clock.now()
	return encodeSnapshot(b.kind.title, time.Now(), func(yield func(saved) bool) {
		if !b.save("", taken, yield) || keys == nil {
			return
		}
		for key := range keys {
			if key != "" && !b.save(key, taken, yield) {
				return
			}
		}
	})
}

// save yields what key owes, if it owes anything, as counted from taken: the
// keys may take long to come.
func (b *bucket) save(key string, taken int64, yield func(saved) bool) bool {
	if key != "" && b.words.keys.Load() == nil {
		return true
	}
	_, tat := b.words.cell(key).load()
	now := b.words.clock.now()
	owed := debt(b.limit.Load().heal(tat, now), now)
	return owed == 0 || yield(saved{key, toDuration(now + owed - taken)})
}

// Restore adds what a snapshot of the same kind of limiter says is still owed,
// less the time that has passed by the wall clock; none if that was set back.
// A key that owes more already stays as it is, so restoring twice, late, or
// into a limiter that is in use never forgives anything. What a key owes is
// time, and cut to what the limit of now can hold.
//
// Data that is damaged or of another kind of limiter is [ErrSnapshot], and
// changes nothing.
func (b *bucket) Restore(data []byte) error {
	owed, err := decodeSnapshot(data, b.kind.title, time.Now())
	if err != nil {
		return err
	}
	for _, s := range owed {
		b.raise(b.words.cell(s.key), toTicks(s.debt))
	}
	return nil
}

// raise lets c owe at least debt.
func (b *bucket) raise(c cell, debt int64) {
	for {
		g := b.limit.Load()
		var tat int64
		c, tat = c.load()
		now := b.words.clock.now()
		next := now + min(debt, g.ceiling)
		if next <= tat {
			return
		}
		interleave.Point()
		if c.swap(tat, next, now) != lost {
			return
		}
	}
}
