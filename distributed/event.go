package distributed

import (
	"time"

	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// Event is a change that a store reports to its hook.
type Event struct {
	Kind    Kind
	Limiter string // the name of the limit; empty if all limits are concerned
	Phase   Phase  // of BreakerChanged
	Node    string // of BreakerChanged, FarAway: its address, in a cluster or a Ring
	Err     error  // the cause; may be nil
	// RoundTrip is the median of the last round trips; of FarAway.
	RoundTrip time.Duration
	// Instances is the number of instances that share the limits now; of InstancesChanged.
	Instances int
}

// logged returns the node and the cause, if the event has them, as attributes of a log line.
func (e Event) logged() (attrs []any) {
	if e.Node != "" {
		attrs = append(attrs, "node", e.Node)
	}
	if e.Err != nil {
		attrs = append(attrs, "err", e.Err)
	}
	return attrs
}

// Kind is the kind of an [Event].
type Kind uint8

// The kinds of events.
const (
	// BreakerChanged: a node's decisions became local, or remote again.
	BreakerChanged Kind = iota
	// KeyFault: a key holds a value of another algorithm, format or program, or
	// its slot is being moved. Only the decisions about this key are local.
	// At most once in ten seconds for each limit.
	KeyFault
	// Misconfigured: credentials, rights, or a server that cannot run scripts.
	Misconfigured
	// InstancesChanged: the number of instances that share the limits changed; see
	// Instances.
	InstancesChanged
	// MixedParameters: a key was last charged under another rate, burst, period or zone,
	// because another instance uses the limit's name with other parameters, as in a rolling
	// deployment, or the limit has just been changed. Each version counts the charges of
	// others, at most as many as fill it. At most once in ten seconds for each limit.
	MixedParameters
	// ProcessLate: this process has too little CPU, or was paused, so it read replies
	// of Redis too late and decided locally. No breaker opens. At most once in ten
	// seconds.
	ProcessLate
	// FarAway: replies take longer than the timeout, so decisions are local; see
	// RoundTrip. Every ten seconds while that lasts.
	FarAway
)

// String returns the kind's name, for logs.
func (k Kind) String() string {
	return nameOf(int(k), "breaker", "key fault", "misconfigured", "instances", "mixed parameters", "process late", "far away")
}

// Phase is the phase of a breaker.
type Phase uint8

// The phases of a breaker.
const (
	// PhaseClosed: Redis makes every decision.
	PhaseClosed Phase = iota
	// PhaseOpen: every decision is local.
	PhaseOpen
	// PhaseRamping: Redis makes a growing part of the decisions again.
	PhaseRamping
)

// phaseOf returns the phase of a breaker that lets percent of the calls pass.
func phaseOf(percent int) Phase {
	switch percent {
	case 0:
		return PhaseOpen
	case remote.FullLevel:
		return PhaseClosed
	}
	return PhaseRamping
}

// String returns the phase's name, for logs.
func (p Phase) String() string { return nameOf(int(p), "closed", "open", "ramping") }

func nameOf(i int, names ...string) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}
