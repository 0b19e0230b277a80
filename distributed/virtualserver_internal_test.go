package distributed

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
)

// virtualServer replaces Redis where time is virtual and no socket may be open. It decides with the oracle that the parity tests compare with the script
// on a real server, and treats each instance as its weather says.
type virtualServer struct {
	mu      sync.Mutex
	buckets map[string]*bucketOracle
	alive   map[int64]int64 // instance to the instant at which it expires
	largest int64           // number of instances that was known
	back    int64           // how far the clock has been set back
	weather map[int]trouble // by instance
	gcra    *decide.GCRA    // of all buckets

	windows func(now int64, a remote.Args) []int64 // decides about the only key of a window
	learned map[string]*decide.Learner
}

// trouble is the fault between an instance and Redis.
type trouble uint8

const (
	fair     trouble = iota
	down             // connections are refused
	silent           // nothing is executed or answered
	sluggish         // replies come after every caller has gone on
	lossy            // commands are executed, and the connection breaks
	readOnly         // an error reply
	troubles
)

func (t trouble) String() string {
	return nameOf(int(t), "fair", "refused", "silent", "sluggish", "lossy", "read-only")
}

// simulatedTrip is how long a command and its reply are on their way.
const simulatedTrip = 300 * time.Microsecond

func newVirtualServer(rate decide.Rate, burst int64) *virtualServer {
	g, err := decide.NewGCRA(rate, burst, 0)
	if err != nil {
		panic(err)
	}
	return &virtualServer{gcra: g, buckets: map[string]*bucketOracle{}, alive: map[int64]int64{}, weather: map[int]trouble{}, learned: map[string]*decide.Learner{}}
}

func (v *virtualServer) set(instances []int, t trouble) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, i := range instances {
		v.weather[i] = t
	}
}

func (v *virtualServer) over(instance int) trouble {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.weather[instance]
}

// lose forgets all keys.
func (v *virtualServer) lose() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.buckets)
	clear(v.alive)
	v.largest = 0
}

// setBack moves the clock of the server back.
func (v *virtualServer) setBack(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.back += d.Microseconds()
}

// carry takes commands to the server and their answers back.
func (v *virtualServer) carry(ctx context.Context, instance int, cmds []*Command) {
	met := v.over(instance)
	var err error
	switch met {
	case down:
		err = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case readOnly:
		err = ReplyError("READONLY You can't write against a read only replica.")
	case silent:
		end, _ := ctx.Deadline()
		select {
		case <-time.After(time.Until(end)):
		case <-ctx.Done():
		}
		err = &net.OpError{Op: "read", Net: "tcp", Err: context.DeadlineExceeded}
	default:
		time.Sleep(simulatedTrip)
		if met == sluggish {
			time.Sleep(150 * time.Millisecond)
		}
		for _, c := range cmds {
			v.execute(c)
		}
		if met == lossy {
			err = io.EOF
		}
	}
	if err != nil {
		for _, c := range cmds {
			c.Done(nil, err)
		}
	}
}

// virtualScripts are the scripts that a virtual server knows, by their hashes.
var virtualScripts = sync.OnceValue(func() map[string]*remote.Script {
	known := map[string]*remote.Script{}
	for _, s := range []*remote.Script{bucketScript, heartbeatScript, fixedWindowScript, slidingWindowScript, learnedScript, pingScript} {
		known[s.Hash()] = s
	}
	return known
})

// hashOf is the hash of the script of a command.
func hashOf(words []string) string {
	if words[0] == "eval" {
		return remote.NewScript("", text(words[1]), 0, 0).Hash()
	}
	return words[1]
}

// execute runs one command.
func (v *virtualServer) execute(c *Command) {
	v.mu.Lock()
	defer v.mu.Unlock()
	words, n := c.Words()
	keys, rest, script := words[3:3+n], words[3+n:], virtualScripts()[hashOf(words)]
	now := time.Now().UnixMicro() - v.back
	reply := []int64{now}
	if script == pingScript { // all keys are there
		c.Done(append(reply, int64(n)), nil)
		return
	}
	for i, key := range keys {
		var a remote.Args
		if script == heartbeatScript && i > 0 {
			break // they are one registry
		}
		for k := range script.Args {
			a[k], _ = strconv.ParseInt(rest[i*script.Args+k], 10, 64)
		}
		switch script {
		case bucketScript:
			reply = append(reply, v.bucket(key, now, a)...)
		case heartbeatScript:
			count, rank := v.beat(now, a)
			reply = append(reply, count, rank, v.largest)
			if a[3] == 1 {
				v.largest = max(v.largest, count)
			}
		case fixedWindowScript, slidingWindowScript:
			reply = append(reply, v.windows(now, a)...)
		case learnedScript:
			if v.learned[key] == nil {
				m := decide.NewLearner(float64(a[2]) / 1e6)
				v.learned[key] = &m
			}
			reply = append(reply, learnedAsModel(v.learned[key], now, a)...)
		default:
			panic(fmt.Sprintf("the virtual server does not know the script %s", script.Name))
		}
	}
	c.Done(reply, nil)
}

// bucket does the same as bucket.lua. The arguments of a bucket determine its
// parameters.
func (v *virtualServer) bucket(key string, now int64, a remote.Args) []int64 {
	o := v.buckets[key]
	if o == nil || o.aliveUntil <= now {
		o = new(bucketOracle)
		v.buckets[key] = o
	}
	s := bucketStep{op: a[0], gcra: v.gcra, n: a[3] / v.gcra.Params().Emission}
	if s.op == opRefund {
		t := v.gcra.Params().Emission
		s.n = a[1] / t
		s.charge = decide.Charge{N: s.n, At: a[2] - s.n*t, A: a[3], B: t}
		s.mark = a[4]
	}
	tat, account, flag := o.run(s, now)
	return []int64{tat, account, flag}
}

// beat does the same as heartbeat.lua.
func (v *virtualServer) beat(now int64, a remote.Args) (count, rank int64) {
	for id, until := range v.alive {
		if until <= now {
			delete(v.alive, id)
		}
	}
	delete(v.alive, a[1])
	if a[0] == opAcquire {
		v.alive[a[1]] = now + a[2]*1000
	}
	for id := range v.alive {
		if id < a[1] {
			rank++
		}
	}
	return int64(len(v.alive)), rank
}

// virtualTransport is one instance's way to a virtual server.
type virtualTransport struct {
	server   *virtualServer
	instance int
	sent     func() // called for every batch that leaves
}

func (t *virtualTransport) Do(ctx context.Context, cmds []*Command) {
	t.sent()
	t.server.carry(ctx, t.instance, cmds)
}

func (t *virtualTransport) Cluster() bool { return false }

func (t *virtualTransport) Slots(context.Context, string) ([]SlotRange, error) { return nil, nil }

// freshRequests keeps the timers and channels of a bubble out of the pool of
// the other tests, and theirs out of the bubble's.
func freshRequests(t *testing.T) {
	remote.FreshRequests()
	t.Cleanup(remote.FreshRequests)
}

// virtualLimiter is the limiter of an instance of its own: one unit an hour.
func virtualLimiter(t *testing.T, server *virtualServer, instance int, opts ...Option) *Limiter {
	t.Helper()
	transport := &virtualTransport{server: server, instance: instance, sent: func() {}}
	store, err := NewWithTransport(transport, append([]Option{WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	l, err := store.TokenBucket("a", algo.PerHour(1))
	require.NoError(t, err)
	return l
}
