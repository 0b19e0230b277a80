package sim

import "time"

// Sharing is a server that shares its cores evenly among all requests: each of
// n runs at the speed min(1, cores/n). The gate is asked on arrival, a rejection
// takes its processor time like everything else.
//
// Runnable is the number beyond the cores.
type Sharing struct {
	// Collapse is the slowdown of all requests per request beyond the cores: at
	// 0.01, 100 of them double all times. It models caches, locks and page faults.
	Collapse float64
	// Quota is the processor time that the process may use in each second, in
	// cores; 0 is no quota. As Linux does, it is given for each 100 ms, and
	// the process, with its gate, is stopped when it is exhausted.
	Quota float64
}

// Workers is a server with one worker per core. Workers take requests in the order of
// arrival and serve each to its end. The gate is asked on
// arrival; a rejection delays the request that a worker begins next.
//
// The waiting requests are runnable.
type Workers struct{}

// Remote is a service whose work is done elsewhere: by a pool of as many workers
// as the scenario has cores, in another machine. The service's own processor has
// only the cost of admitting and rejecting, and nothing in it is ever runnable.
type Remote struct{}

const quotaPeriod = 100 * time.Millisecond

// sharing is the three of them. It keeps a clock of its own that runs at the speed of one request: a
// request that needs s is done when that clock has advanced by s, so the order of
// completions is known when they begin.
type sharing struct {
	Sharing
	w       *world
	cores   float64
	jobs    heap[*request] // by their end
	speed   float64        // of one core; 0: stopped
	virtual float64
	used    float64 // processor time
	at      int64   // instant of the two above
	due     int64   // instant of the next event
	budget  float64 // of the quota, until the end of the period
	paused  bool
	later   []*request // arrived, or had waited, while the process was stopped

	workers bool
	queue   queue // for a worker
	debt    int64 // processor time of rejections that no worker has spent yet
	remote  bool
	own     int64 // processor time of a service whose work is done elsewhere
}

func newSharing(s Sharing, w *world) *sharing {
	p := &sharing{Sharing: s, w: w, cores: float64(w.Procs()), speed: 1 - w.Neighbour, due: never}
	if p.Quota > 0 {
		p.budget = p.Quota * float64(quotaPeriod)
		w.agenda.add(int64(quotaPeriod), nextPeriod, nil)
	}
	return p
}

// pace is the speed of each request, and the number of busy cores.
func (p *sharing) pace() (each, busy float64) {
	n := float64(len(p.jobs))
	if n == 0 || p.stopped() {
		return 0, 0
	}
	busy = min(n, p.cores)
	each = p.speed * busy / n
	if n > p.cores {
		each /= 1 + p.Collapse*(n-p.cores)
	}
	return each, busy * p.speed
}

func (p *sharing) stopped() bool { return p.paused || p.Quota > 0 && p.budget <= 0 }

// advance brings the clock to the present.
func (p *sharing) advance() {
	each, busy := p.pace()
	dt := float64(p.w.now - p.at)
	p.virtual += each * dt
	p.used += busy * dt
	if p.Quota > 0 {
		p.budget -= busy * dt
	}
	p.at = p.w.now
}

// plan sets the instant of the next event.
func (p *sharing) plan() {
	p.due = never
	each, busy := p.pace()
	if each == 0 {
		return
	}
	in := (p.jobs[0].due - p.virtual) / each
	if p.Quota > 0 {
		in = min(in, p.budget/busy)
	}
	p.due = p.w.now + max(int64(in)+1, 1)
}

func (p *sharing) next() int64 { return p.due }

func (p *sharing) fire() {
	p.advance()
	for len(p.jobs) > 0 && p.jobs[0].due <= p.virtual {
		if r := p.jobs.pop(); r.io > 0 {
			p.w.agenda.add(p.w.now+r.io, endWait, r)
		} else {
			p.w.over(r)
		}
		if len(p.queue) > 0 {
			p.start(p.queue.pop())
		}
	}
	p.plan()
}

func (p *sharing) arrive(r *request) {
	if p.stopped() {
		p.later = append(p.later, r)
		return
	}
	p.advance()
	p.begin(r)
	p.plan()
}

func (p *sharing) begin(r *request) {
	ok := p.w.admit(r)
	switch {
	case p.remote && ok:
		p.own += p.w.cost.admit
		r.left -= p.w.cost.admit
	case p.remote:
		p.own += r.left
	case p.workers && !ok:
		p.debt += r.left
	}
	switch {
	case p.workers && !ok:
		p.w.over(r)
	case p.workers && len(p.jobs) == int(p.cores):
		p.queue.push(r)
	default:
		p.start(r)
	}
}

func (p *sharing) start(r *request) {
	r.due = p.virtual + float64(r.left+p.debt)
	p.debt = 0
	p.jobs.push(r)
}

// wake ends a request: its answer is part of the cost of an admission.
func (p *sharing) wake(r *request) {
	if p.stopped() {
		p.later = append(p.later, r)
		return
	}
	p.w.over(r)
}

func (p *sharing) freeze() { p.advance(); p.paused = true; p.plan() }
func (p *sharing) thaw()   { p.advance(); p.paused = false; p.catchUp() }

func (p *sharing) refill() {
	p.advance()
	p.budget = p.Quota * float64(quotaPeriod)
	p.catchUp()
}

// catchUp handles the requests that came while the process was stopped.
func (p *sharing) catchUp() {
	if p.stopped() {
		return
	}
	for _, r := range p.later {
		if r.fate == fresh {
			p.begin(r)
		} else {
			p.w.over(r)
		}
	}
	p.later = p.later[:0]
	p.plan()
}

func (p *sharing) runnable() int {
	if p.remote {
		return 0
	}
	return max(len(p.queue)+len(p.jobs)-int(p.cores), 0)
}

func (p *sharing) cpu() int64 {
	if p.remote {
		return p.own
	}
	_, busy := p.pace()
	return int64(p.used + busy*float64(p.w.now-p.at))
}
