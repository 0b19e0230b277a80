package algo

import "context"

// group is the limiter's side of the lease that a composition returns.
type group struct {
	pass   pass
	leases []Lease // one for each leaf, in order
	owners []int   // the request of each leaf; nil: each has its own
	reqs   int
}

// mixed is the cost of a composition's lease: no amount that Settle could be
// called with, because each part has its own.
const mixed = -1

// newGroup makes a group and its leases in one allocation where there are few.
func newGroup(ctx context.Context, leaves []leaf, reqs int) *group {
	var g *group
	switch n := len(leaves); {
	case n <= 2:
		two := new(struct {
			group
			room [2]Lease
		})
		g, two.leases = &two.group, two.room[:n]
	case n <= 4:
		four := new(struct {
			group
			room [4]Lease
		})
		g, four.leases = &four.group, four.room[:n]
	default:
		g = &group{leases: make([]Lease, n)}
	}
	g.pass.ctx, g.reqs = ctx, reqs
	if len(leaves) != reqs {
		g.owners = make([]int, len(leaves))
		for i := range leaves {
			g.owners[i] = leaves[i].owner
		}
	}
	return g
}

// Release implements [Releaser].
func (g *group) Release(_ Handle, o Outcome) { releaseAll(g.leases, o) }

// Settle implements [Releaser].
func (g *group) Settle(_ Handle, actual int64) {
	for i := range g.leases {
		g.leases[i].Settle(actual)
	}
}

// verdict is a group that holds nothing: it was denied.
type verdict group

// Release implements [Releaser].
func (*verdict) Release(Handle, Outcome) {}

// Settle implements [Releaser].
func (*verdict) Settle(Handle, int64) {}

// releaseAll releases leases from the last to the first, the others too when
// one of them panics.
func releaseAll(leases []Lease, o Outcome) {
	left := len(leases)
	if left == 0 {
		return
	}
	defer func() { releaseAll(leases[:left], o) }()
	for left > 0 {
		left--
		leases[left].Release(o)
	}
}

// Parts returns each limit's own decision, in the order in which the limits
// were given: for [AcquireAll] the decision on each Request, combined where its
// limiter is itself a composition; for a limiter made by [All] that of each
// limit. It is nil for the lease of a single limit.
//
// When the whole was denied, nothing is charged, and Allowed tells for each
// part whether it would have admitted. A part that could not be asked then,
// because its backend failed, has the zero Decision.
//
// The slice is made for each call. After Release there is nothing to be had.
func (l *Lease) Parts() []Decision {
	switch g := l.releaser.(type) {
	case *group:
		return g.parts()
	case *verdict:
		return (*group)(g).parts()
	}
	return nil
}

func (g *group) parts() []Decision {
	ds := make([]Decision, 0, g.reqs)
	for i := 0; i < len(g.leases); {
		j := i + 1
		for g.owners != nil && j < len(g.leases) && g.owners[j] == g.owners[i] {
			j++
		}
		ds = append(ds, combine(g.leases[i:j]))
		i = j
	}
	return ds
}
