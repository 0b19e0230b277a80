package distributed

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-go/sluice/distributed/internal/remote"
)

func (s *Store) emit(e Event) {
	switch e.Kind {
	case BreakerChanged:
		level := slog.LevelInfo
		if e.Phase == PhaseOpen {
			level = slog.LevelWarn
		}
		attrs := append([]any{"state", e.Phase.String()}, e.logged()...)
		if small := s.smallLimits(); e.Phase == PhaseOpen && len(small) > 0 {
			attrs = append(attrs, "limits_smaller_than_the_fleet", small)
		}
		s.logger.Log(context.Background(), level, "distributed: breaker "+breakerText[e.Phase], attrs...)
	case InstancesChanged:
		s.logger.Debug("distributed: the number of instances changed", "instances", e.Instances)
	}
	if s.hook != nil {
		s.hook(e)
	}
}

// smallLimits are the limits with less than a unit for each instance, at most ten.
func (s *Store) smallLimits() (names []string) {
	for _, l := range s.allLimiters() {
		if len(names) < 10 && l.fallback.tooSmall(s.registry.known()) {
			names = append(names, l.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// breakerText is the consequence of each state of a breaker.
var breakerText = [...]string{
	PhaseClosed:  "closed: Redis makes the decisions",
	PhaseOpen:    "open: Redis does not reply, limits are decided locally",
	PhaseRamping: "ramping: Redis replies again and makes a growing part of the decisions",
}

// logPause is the least time between two reports of one kind.
const logPause = 10 * time.Second

// mayLog reports whether a report of a kind is due: a line of the log, or an event of a limit.
func (s *Store) mayLog(kind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if last := s.logged[kind]; !last.IsZero() && now.Sub(last) < logPause {
		return false
	}
	s.logged[kind] = now
	return true
}

// host is the store as the way to Redis sees it.
type host Store

// Probe charges a bucket that is full again after a millisecond; a Ping runs all commands. While
// the breaker of the node is open the heartbeat of this instance goes out with it: a node that is
// far away still counts the instances.
func (h *host) Probe(key string, n *remote.Node) []*remote.Request {
	if h.pinging.Load() > 0 {
		return []*remote.Request{remote.NewRequest(pingScript, key, remote.Args{0})}
	}
	const millisecond = 1000
	probes := []*remote.Request{remote.NewRequest(bucketScript, key, remote.Args{opAcquire, millisecond, 0, millisecond})}
	if reg := &h.registry; reg.started.Load() && n.Away() {
		if beat := reg.newRequest(opAcquire); h.remote.Node(beat.Keys[0]) == n {
			probes = append(probes, beat)
		}
	}
	return probes
}

// Parted looks for a proxy that runs a script on the server of its first key: there the others
// are missing.
func (h *host) Parted() (bool, error) {
	const put, count = 1, 2 // of ping.lua
	const keys = 16         // two servers have them all on one of them in one of 65 536 cases
	var each []*remote.Request
	all := make([]string, keys)
	for i := range all {
		all[i] = fmt.Sprintf("%s:{::%x}::probe", h.prefix, rand.Uint64())
		each = append(each, remote.NewRequest(pingScript, all[i], remote.Args{put}))
	}
	if err := h.remote.Execute(each); err != nil {
		return false, err
	}
	there := remote.NewRequest(pingScript, all[0], remote.Args{count})
	there.Keys = all
	if err := h.remote.Execute([]*remote.Request{there}); err != nil || there.Reply[0] == keys {
		return false, err
	}
	h.logger.Info("distributed: a proxy runs each script on the server of its first key: keys are decided one by one")
	return true, nil
}

// Scripts are those of the limits that are in use, and all others.
func (h *host) Scripts() (used, others []*remote.Script) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.limiters {
		if s := l.load().script(); !slices.Contains(used, s) {
			used = append(used, s)
		}
	}
	return used, slices.DeleteFunc(slices.Clone(scripts), func(s *remote.Script) bool { return slices.Contains(used, s) })
}

// Probed notes the heartbeat that went out with a probe.
func (h *host) Probed(probes []*remote.Request) {
	if len(probes) > 1 && probes[1].Err == nil {
		h.registry.answered(probes[1])
	}
}

// Changed reports the state of a breaker. A node that answers again gets the renewals that it
// has missed.
func (h *host) Changed(addr string, percent int, err error) {
	e := Event{Kind: BreakerChanged, Node: addr, Phase: phaseOf(percent), Err: err}
	if e.Phase == PhaseRamping {
		for _, l := range (*Store)(h).allLimiters() {
			if l.slots != nil {
				l.slots.renewAll()
			}
		}
	}
	(*Store)(h).emit(e)
}

func (h *host) Failed(f remote.Failure, err error) { (*Store)(h).failed(f, err) }

// failed logs a failure, each kind at most every ten seconds.
func (s *Store) failed(f remote.Failure, err error) {
	if f == remote.NoFailure || s.remote.Closed() || !s.mayLog(f.String()) {
		return
	}
	switch f {
	case remote.Misconfigured:
		s.logger.Error("distributed: Redis rejected a script (check ACL and configuration); limits are decided locally", "err", err)
		s.emit(Event{Kind: Misconfigured, Err: err})
	case remote.KeyFault:
		s.logger.Warn("distributed: Redis cannot decide about a key; its limits are decided locally", "kind", f.String(), "err", err)
	default:
		s.logger.Warn("distributed: a Redis command failed; its limits are decided locally", "kind", f.String(), "err", err)
	}
}

// Lost reports a correction that was given up.
func (h *host) Lost(name string, total int64, err error) {
	if s := (*Store)(h); name != "" && s.mayLog("correction lost") {
		s.logger.Warn("distributed: a release, refund or settlement was lost; its units stay charged until they drain or expire",
			"limit", name, "lost", total, "err", err)
	}
}

// ProcessLate reports that this process is late.
func (h *host) ProcessLate(lag time.Duration) {
	if s := (*Store)(h); s.mayLog("process late") {
		s.logger.Warn("distributed: this process is late: it has too little CPU, or was paused; decisions wait longer meanwhile, or are local",
			"late", lag, "timeout", s.timeout)
		s.emit(Event{Kind: ProcessLate})
	}
}

// Far reports a node whose replies come after the timeout.
func (h *host) Far(addr string, median, p99 time.Duration) {
	if s := (*Store)(h); s.mayLog("far away") {
		e := Event{Kind: FarAway, Node: addr, RoundTrip: median}
		s.logger.Warn(fmt.Sprintf("distributed: answers take %v, the timeout is %v: limits are local; see WithTimeout",
			median.Round(time.Millisecond/10), s.timeout), append([]any{"p99", p99}, e.logged()...)...)
		s.emit(e)
	}
}
