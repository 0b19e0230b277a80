package admission

import (
	"sync"

	"github.com/sluice-go/sluice/algo"
)

// Named is the limiter of a policy.
type Named struct {
	Name    string
	Limiter algo.Limiter
	names   *names // of all policies that were made with this one
}

// Named returns the limiter of p.
func (p *Policy[C]) Named() Named { return Named{p.Name, p.Limiter, p.names} }

// names are the names of the policies of a middleware: of all plans, also of those that
// have been replaced.
type names struct {
	mu    sync.Mutex
	known map[string]bool
}

func (n *names) add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = make(map[string]bool)
	}
	n.known[name] = true
}

func (n *names) has(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[name]
}
