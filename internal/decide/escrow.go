package decide

// Escrow is a limit that several regions share. A region spends units that it has leased from the
// shared limit, which charges them at once. While it holds none it spends in advance, and the next
// lease covers that. Its decisions never wait for the shared limit.
//
// Units move and are not copied: all but Advance of the units that a region admits are charged
// before, and at most Hold charged units are unspent. So n regions together admit in any window at
// most n * (Advance + Hold) units more than the shared limit. After O'Neil, The escrow
// transactional method, ACM TODS 11(4), 1986.
type Escrow struct {
	Advance int64 // units that a region may be in debt
	Hold    int64 // units that a region may hold
	// Memory is how long a region holds units, and remembers a debt that the shared limit does not
	// take: a disconnected region continues with Advance units per Memory.
	Memory int64
	// Patience is how long the region waits for the result of a lease.
	Patience int64
}

const (
	escrowSlot    = 1_000_000 // demand is counted in slots of a second
	escrowTrip    = 100_000   // until it is known
	escrowMaxWait = 10_000_000
)

// EscrowState is a key in a region, in microseconds of the region's clock. The zero state is an
// unused key.
type EscrowState struct {
	Balance int64 // units held, or below 0 in debt
	Ends    int64 // when the balance is void
	Since   int64 // begin of the slot
	Asked   int64 // units requested in the slot, without requests that change nothing
	Demand  int64 // the same for the slot before
	Trip    int64 // how long a lease takes
	Leased  int64 // deadline, and name, of the lease under way
	Coming  int64 // units of that lease
	Next    int64 // earliest begin of the next lease
}

// Aged clears entries that have expired, and those that only a clock that stepped back can have left.
func (e *Escrow) Aged(s EscrowState, now int64) EscrowState {
	if s.Ends <= now {
		s.Balance, s.Ends = 0, 0
	}
	s.Ends = min(s.Ends, now+e.Memory)
	if s.Leased <= now {
		s.Leased, s.Coming = 0, 0
	}
	if s.Next > now+escrowMaxWait {
		s.Next = 0
	}
	if s.Trip == 0 {
		s.Trip = escrowTrip
	}
	return s
}

// count begins a new slot once the current one is over.
func (s *EscrowState) count(now int64) {
	age := now - s.Since
	if age >= 0 && age < escrowSlot {
		return
	}
	s.Demand = 0
	if age >= 0 && age < 2*escrowSlot {
		s.Demand = s.Asked
	}
	s.Since, s.Asked = now, 0
}

// Acquire decides on n units. The caller must lease want units in the background and report them to
// [Escrow.Lease] under the name next.Leased; want is 0 for all but one caller. A denial changes
// only the state of the lease.
func (e *Escrow) Acquire(s EscrowState, now, n int64) (next EscrowState, admitted bool, want int64) {
	s = e.Aged(s, now)
	if n == 0 {
		return s, true, 0
	}
	s.count(now)
	s.Asked += n
	if admitted = s.Balance+e.Advance >= n; admitted {
		s.Balance -= n
		if s.Balance < 0 {
			s.Ends = now + e.Memory
		}
	}
	if s.Leased > now+e.Patience { // the clock stepped back
		s.Leased, s.Coming = 0, 0
	}
	if s.Leased == 0 && s.Next <= now {
		if want = e.target(s, n, admitted) - s.Balance; want > 0 {
			s.Leased, s.Coming = now+e.Patience, want
		}
	}
	return s, admitted, max(want, 0)
}

// target returns the balance that a lease aims at: the demand of three leases, once the balance has
// fallen to half of that, and at least the denied units. Without need it is at most the balance.
func (e *Escrow) target(s EscrowState, n int64, admitted bool) int64 {
	low := max(s.Demand, s.Asked) * s.Trip / escrowSlot * 3 / 2
	switch {
	case !admitted:
		return min(max(2*low, n), e.Hold)
	case s.Balance < min(low, e.Hold):
		return min(2*low, e.Hold)
	}
	return 0
}

// Lease adds the units that the named lease brought after trip; the next one begins after wait.
// reached tells whether the shared limit answered. A late lease changes nothing: its units are
// lost.
func (e *Escrow) Lease(s EscrowState, now, name, units, trip, wait int64, reached bool) EscrowState {
	s = e.Aged(s, now)
	if s.Leased != name || name == 0 {
		return s
	}
	s.Leased, s.Coming, s.Next = 0, 0, now+min(wait, escrowMaxWait)
	if reached {
		s.Trip = max(trip, s.Trip-s.Trip/8)
	}
	s.Balance = min(s.Balance+units, e.Hold)
	if s.Balance > 0 && units > 0 || s.Balance < 0 && reached {
		s.Ends = now + e.Memory
	}
	return s
}

// Return gives back n units or, for n below 0, charges more. Held units and those under way are at
// most Hold together.
func (e *Escrow) Return(s EscrowState, now, n int64) EscrowState {
	s = e.Aged(s, now)
	was := s.Balance
	s.Balance = max(s.Balance+n, -maxEscrowDebt)
	if n > 0 {
		s.Balance = max(was, min(s.Balance, e.Hold-s.Coming))
	}
	if s.Balance < 0 && n < 0 || s.Balance > 0 && was <= 0 {
		s.Ends = now + e.Memory
	}
	return s
}

const maxEscrowDebt = 1 << 40

// RetryAfter returns when a denied caller should retry: after the lease under way, or the next one.
// s is the result of Acquire.
func (e *Escrow) RetryAfter(s EscrowState, now int64) int64 {
	if s.Leased > 0 {
		return s.Trip
	}
	return max(s.Next-now, 0) + s.Trip
}

// Expiry returns when the state has no effect any more.
func (s *EscrowState) Expiry() int64 {
	end := max(s.Since+2*escrowSlot, s.Leased, s.Next)
	if s.Balance != 0 {
		end = max(end, s.Ends)
	}
	return end
}
