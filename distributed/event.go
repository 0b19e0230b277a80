package distributed

// Event is a change that the hook of a store hears of.
type Event struct {
	Kind    Kind
	Limiter string // the limit concerned; empty if all are
	State   State  // of BreakerChanged
	Err     error  // what caused it; may be nil
}

// Kind tells events apart.
type Kind uint8

// The kinds of events.
const (
	// BreakerChanged: the store went over to local decisions, or came back.
	BreakerChanged Kind = iota
	// KeyFault: a key holds something that no limit has written. Its
	// decisions are local; other keys are not concerned.
	KeyFault
	// Misconfigured: credentials, rights, or a server that cannot run scripts.
	Misconfigured
	// InstancesChanged: another number of instances shares the limits.
	InstancesChanged
)

// String names the kind, for logs.
func (k Kind) String() string {
	return nameOf(int(k), "breaker", "key fault", "misconfigured", "instances")
}

// State is what a breaker does.
type State uint8

// The states of a breaker.
const (
	// Closed: every decision is Redis' own.
	Closed State = iota
	// Open: every decision is local.
	Open
	// Ramping: a growing part of the decisions is Redis' own again.
	Ramping
)

// String names the state, for logs.
func (s State) String() string { return nameOf(int(s), "closed", "open", "ramping") }

func nameOf(i int, names ...string) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}
