package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// mostNoted is how many keys a journal remembers for each limit. Further ones begin anew
// after a restart.
const mostNoted = 1 << 20

// Journal lets the debts of limits in this process outlast a restart: it remembers the keys
// of requests, and writes their debts to a file. A restored debt is never smaller than it
// would have been, and in a window it may last longer, by up to one window. A journal is
// safe for concurrent use.
type Journal struct {
	path  string
	notes sync.Map // of *notes by the ID of the limit
}

type notes struct {
	keys sync.Map
	n    atomic.Int64
}

// NewJournal makes a journal that is kept at path.
func NewJournal(path string) *Journal { return &Journal{path: path} }

// Note remembers a key of a limit.
func (j *Journal) Note(id, key string) {
	of, known := j.notes.Load(id)
	if !known {
		of, _ = j.notes.LoadOrStore(id, new(notes))
	}
	n := of.(*notes)
	if _, known := n.keys.Load(key); known || n.n.Load() >= mostNoted {
		return
	}
	if _, known := n.keys.LoadOrStore(key, nil); !known {
		n.n.Add(1)
	}
}

// debt is a line of the file.
type debt struct {
	Limit     string    `json:"limit"`
	Algorithm string    `json:"algorithm"`
	Key       string    `json:"key"`
	Used      int64     `json:"used"`
	Until     time.Time `json:"until"` // the debt has drained
	At        time.Time `json:"at"`
}

// outlast are the algorithms whose debts are worth keeping, and whether they decay evenly.
var outlast = map[string]bool{
	"token-bucket": true, "leaky-bucket": true, "strict": true,
	"fixed-window": false, "sliding-window": false, "sliding-log": false,
}

// Save replaces the file by the current debts of the keys in limiters, and forgets keys
// without debt.
func (j *Journal) Save(limiters map[string]algo.Limiter) (err error) {
	file, err := os.CreateTemp(filepath.Dir(j.path), "snapshot-*") // which only its owner can read
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	out := bufio.NewWriter(file)
	err = errors.Join(j.write(json.NewEncoder(out), limiters), out.Flush(), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), j.path)
}

func (j *Journal) write(out *json.Encoder, limiters map[string]algo.Limiter) (err error) {
	for id, l := range local(limiters) {
		of, known := j.notes.Load(id)
		algorithm := l.Spec().Algorithm
		if _, lasting := outlast[algorithm]; !known || !lasting {
			continue
		}
		n, now := of.(*notes), time.Now()
		n.keys.Range(func(key, _ any) bool {
			d := look(l, key.(string))
			used := d.Limit - d.Remaining
			if used <= 0 || d.ResetAfter <= 0 {
				n.keys.Delete(key)
				n.n.Add(-1)
				return true
			}
			err = out.Encode(debt{id, algorithm, key.(string), used, now.Add(d.ResetAfter), now})
			return err == nil
		})
	}
	return err
}

// Restore charges limiters with the debts in the file, minus the part that has
// drained since. It returns the number of keys with debt. A missing file counts as
// empty.
func (j *Journal) Restore(limiters map[string]algo.Limiter) (keys int, err error) {
	file, err := os.Open(j.path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return 0, err
	}
	defer file.Close()
	known := local(limiters)
	for lines := json.NewDecoder(bufio.NewReader(file)); lines.More(); {
		var d debt
		if err := lines.Decode(&d); err != nil {
			return keys, err
		}
		l := known[d.Limit]
		if l == nil || l.Spec().Algorithm != d.Algorithm {
			continue
		}
		if owed := min(d.owed(time.Now()), look(l, d.Key).Remaining); owed > 0 {
			lease, err := l.Acquire(context.Background(), d.Key, owed)
			if err != nil {
				return keys, err
			}
			lease.Release(algo.Succeeded)
			j.Note(d.Limit, d.Key)
			keys++
		}
	}
	return keys, nil
}

// owed is the rest of a debt.
func (d *debt) owed(now time.Time) int64 {
	left, all := d.Until.Sub(now), d.Until.Sub(d.At)
	if left <= 0 || all <= 0 || d.Used <= 0 {
		return 0
	}
	if !outlast[d.Algorithm] || left > all { // no more debt after the clock was set back
		return d.Used
	}
	return int64(math.Ceil(float64(d.Used) * float64(left) / float64(all)))
}

// look is the state of a key.
func look(l algo.Limiter, key string) algo.Decision {
	lease, err := l.Acquire(context.Background(), key, 0)
	if err == nil {
		lease.Release(algo.Canceled)
	}
	return lease.Decision
}

// local is the limiters in this process.
func local(limiters map[string]algo.Limiter) map[string]*algo.RateLimiter {
	all := map[string]*algo.RateLimiter{}
	for id, l := range limiters {
		for one := range algo.Walk(l) {
			if r, ok := one.(*algo.RateLimiter); ok {
				all[id] = r
			}
		}
	}
	return all
}
