package sim

import (
	"fmt"
	"time"
)

const (
	us  = time.Microsecond
	ms  = time.Millisecond
	sec = time.Second
)

// stepped is a load of x from 30 s to 90 s on a server of 4 cores.
func stepped(id, about string, x float64, model any, work Service, slo, reject time.Duration) Scenario {
	return Scenario{
		ID: id, About: about, Model: model, Host: Host{Cores: 4}, Service: work, Reject: reject,
		Load: Step(x, 30*sec, 90*sec, 120*sec), From: 30 * sec, To: 90 * sec, SLO: slo,
	}
}

// cpu10 is the handler of most scenarios.
var cpu10 = Service{CPU: 10 * ms}

// Classic are the scenarios by which limiters are usually compared: a server
// that shares its cores evenly, 4 of them.
func Classic() []Scenario {
	var all []Scenario
	for i, x := range []float64{2, 5, 10} {
		a := stepped(fmt.Sprintf("A%gx", x), fmt.Sprintf("10 ms CPU, %gx", x), x, Sharing{}, cpu10, 250*ms, 50*us)
		a.Target = Target{[]float64{.98, .96, .94}[i], 200 * ms}
		all = append(all, a)
	}
	b := stepped("B", ".2 ms CPU, 2x", 2, Sharing{}, Service{CPU: 200 * us}, 20*ms, 4*us)
	b.Target = Target{.97, 5 * ms}
	c := stepped("C", "2 ms CPU + 50 ms IO, 3x", 3, Sharing{}, Service{CPU: 2 * ms, IO: 50 * ms}, 500*ms, 35*us)
	c.Target = Target{.96, 280 * ms}
	d := stepped("D", "as A, 3x, 1 % slower per runnable", 3, Sharing{Collapse: .01}, cpu10, 250*ms, 50*us)
	d.Target.Goodput = .93
	f := stepped("F", "as A, 5 s of 3x every 15 s", 3, Sharing{}, cpu10, 250*ms, 50*us)
	f.Target.Goodput = .97
	f.Load = Bursts(3, 30*sec, 5*sec, 15*sec, 90*sec, 120*sec)
	g := stepped("G", "as A, steady .85x", 1, Sharing{}, cpu10, 250*ms, 50*us)
	g.Load, g.From, g.To = Steady(calm, 60*sec), 0, 60*sec
	h := g
	h.ID, h.About, h.Neighbour = "H", "as G, a neighbour takes .35 of the processor", .35
	h2 := g
	h2.ID, h2.About, h2.Greedy = "H2", "as A, steady .35x, a neighbour takes all idle time", true
	h2.Load = Steady(.35, 60*sec)
	i := stepped("I", "as A, lognormal, sigma 1, 3x", 3, Sharing{}, Service{CPU: 10 * ms, Sigma: 1}, 250*ms, 50*us)
	i.Target.Goodput = .97
	return append(all, b, c, d, f, g, h, h2, i)
}

// Servers are other models of the server.
func Servers() []Scenario {
	quota := stepped("quota", "as A, 3x, CFS quota of 4 on 8 processors", 3, Sharing{Quota: 4}, cpu10, 250*ms, 50*us)
	quota.Procs, quota.Cores = 8, 8
	pod := stepped("pod", "as A, 1.3x, CFS quota of 1 on 2 processors", 1.3, Sharing{Quota: 1}, cpu10, 250*ms, 50*us)
	pod.Procs, pod.Cores = 2, 2
	pauses := stepped("pauses", "as A, 3x, stops of 50 to 200 ms every 5 s", 3, Sharing{}, cpu10, 400*ms, 50*us)
	pauses.Pauses = Pauses{5 * sec, 50 * ms, 200 * ms}
	return []Scenario{
		stepped("fifo2x", "FIFO workers, 10 ms, 2x", 2, Workers{}, cpu10, 250*ms, 50*us),
		stepped("fifo5x", "FIFO workers, 10 ms, 5x", 5, Workers{}, cpu10, 250*ms, 50*us),
		stepped("remote", "pool of 4 elsewhere, 10 ms, 3x", 3, Remote{}, cpu10, 250*ms, 50*us),
		quota, pod, pauses,
	}
}

// Clients are other habits of clients.
func Clients() []Scenario {
	ramp := stepped("ramp", "as A, up to 5x and back within 60 s", 5, Sharing{}, cpu10, 250*ms, 50*us)
	ramp.Load = Ramp(5, 30*sec, 90*sec, 120*sec)
	retries := stepped("retries", "as A, 2x, up to 3 retries, clients wait 1 s", 2, Sharing{}, cpu10, 250*ms, 50*us)
	retries.Retries, retries.Patience = 3, sec
	zombies := stepped("zombies", "as A, 5x, clients wait 300 ms, the work goes on", 5, Sharing{}, cpu10, 250*ms, 50*us)
	zombies.Patience = 300 * ms
	classes := stepped("classes", "as A, 3x, five classes", 3, Sharing{}, cpu10, 250*ms, 50*us)
	classes.Priorities = true
	return []Scenario{ramp, retries, zombies, classes}
}

// Handlers are the requests of the measurements in real processes.
var Handlers = []struct {
	Name string
	Service
	SLO time.Duration
}{
	{".1ms", Service{CPU: 100 * us}, 100 * ms},
	{".5ms", Service{CPU: 500 * us}, 100 * ms},
	{"5ms", Service{CPU: 5 * ms}, 250 * ms},
	{"30ms", Service{CPU: 30 * ms}, 500 * ms},
	{"100ms", Service{CPU: 100 * ms}, 1500 * ms},
	{"io", Service{CPU: 2 * ms, IO: 50 * ms}, 500 * ms},
	{"mix", Service{CPU: ms, Rare: 50 * ms, RareEach: 20}, 500 * ms},
}

// Process is a Go server with one of the handlers, on one core, under a step of
// x capacities from 10 s to 30 s, or under .85 all the time if x is less than 1.
// Clients wait 2 s.
func Process(handler int, x float64) Scenario {
	h := Handlers[handler]
	p := Scenario{
		ID: fmt.Sprintf("go-%s-%gx", h.Name, x), About: fmt.Sprintf("Go server, %s, %gx", h.Name, x),
		Model: GoScheduler{}, Host: Host{Cores: 1}, Service: h.Service, SLO: h.SLO,
		Admit: 25 * us, Reject: 13 * us, Patience: 2 * sec,
		Load: Step(x, 10*sec, 30*sec, 45*sec), From: 10 * sec, To: 30 * sec,
	}
	if x < 1 {
		p.Load, p.From, p.To = Steady(x, 30*sec), 0, 30*sec
	}
	return p
}

// Processes are all handlers at 2x, 5x, 10x and .85x.
func Processes() []Scenario {
	var all []Scenario
	for h := range Handlers {
		for _, x := range []float64{.85, 2, 5, 10} {
			all = append(all, Process(h, x))
		}
	}
	return all
}

// Uneven are Go servers whose requests come in batches, as from the connections of an
// HTTP/2 or gRPC proxy, and servers with neighbours that take .35 or .75 of the processor.
func Uneven() (all []Scenario) {
	for i, batch := range []int{20, 20, 5} {
		h := i + 1
		for _, x := range []float64{.85, 1.3, 2, 5} {
			b, n := Process(h, x), Process(h, x)
			b.ID, b.About, b.Burst = "batch-"+b.ID, fmt.Sprintf("%s, batches of %d", b.About, batch), batch
			n.ID, n.About, n.Neighbour = "neighbour-"+n.ID, n.About+", a neighbour takes .35", .35
			c := n
			c.ID, c.About, c.Neighbour = "crowded-"+Process(h, x).ID, Process(h, x).About+", neighbours take .75", .75
			all = append(all, b, n, c)
		}
	}
	return all
}

// Bursts that drain within the SLO, and closed loops: nothing of them is overload.
// Two processors, as in the measurements of real processes.
func bursty(work Service, n int, x float64) Scenario {
	return Scenario{
		ID: fmt.Sprintf("burst-%d-%v-%g", n, work.CPU, x), About: fmt.Sprintf("bursts of %d, %v, %gx", n, work.CPU, x),
		Model: GoScheduler{}, Host: Host{Cores: 2}, Service: work, SLO: 500 * ms,
		Admit: 25 * us, Reject: 14 * us, Patience: 2 * sec,
		Load: Steady(x, 30*sec), To: 30 * sec, Burst: n,
	}
}

func closed(work Service, n int) Scenario {
	s := bursty(work, 0, 1)
	s.ID, s.About, s.Clients = fmt.Sprintf("closed-%d-%v", n, work.CPU), fmt.Sprintf("closed loop of %d, %v", n, work.CPU), n
	s.Load, s.To = Steady(1, 10*sec), 10*sec
	return s
}

// Harmless are loads that drain within the SLO: nothing is to be rejected.
func Harmless() (all []Scenario) {
	for _, cpu := range []time.Duration{50 * us, 500 * us, 5 * ms} {
		for _, n := range []int{100, 200, 400, 1000} {
			for _, x := range []float64{.15, .3, .5} {
				s := bursty(Service{CPU: cpu}, n, x)
				if drains := time.Duration(float64(n) / s.Capacity() * 1e9); drains < s.SLO*7/10 && drains < time.Duration(float64(n)/s.Capacity()/x*1e9) {
					all = append(all, s)
				}
			}
		}
		for _, n := range []int{64, 256, 1024} {
			s := closed(Service{CPU: cpu}, n)
			if float64(n)/s.Capacity() < s.SLO.Seconds()*.7 {
				all = append(all, s)
			}
		}
	}
	return all
}
