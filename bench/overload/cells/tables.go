package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// slo is how late an answer still counts.
const slo = 500 * time.Millisecond

// bursts come at a part of the capacity; each drains in time where the server
// without a limiter answers all.
func bursts(r rig) error {
	fmt.Print("\n## Bursts\n\nRejected, and p99 of the others.\n\n| handler | burst | of the capacity |", header(), "\n|---|---|---|", strings.Repeat("---|", len(limiters())), "\n")
	for _, r.work = range []string{"50us", "500us", "5ms"} {
		rate, err := r.capacity()
		if err != nil {
			return err
		}
		for _, n := range []int{100, 200, 400, 1000} {
			for _, part := range []float64{.15, .3, .5} {
				if err := r.row(fmt.Sprintf("| %s | %d | %.0f %% |", r.work, n, 100*part), func(r rig) string {
					r.open(part*rate, 1, time.Second) // the limiter learns the cost of a request
					return r.open(part*rate, n, max(length(), time.Duration(3*float64(n)/(part*rate)*1e9))).cell()
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// largeBurst is followed by others that drain in time, from 1 s after it on.
func largeBurst(r rig) error {
	fmt.Print("\n## Bursts after a large one\n\nA burst of the requests of 1 s, and then those of 100 ms. Rejected of the latter, and p99 of the others.\n\n| handler | of the capacity |", header(), "\n|---|---|", strings.Repeat("---|", len(limiters())), "\n")
	for _, r.work = range []string{"500us", "2ms", "5ms"} {
		rate, err := r.capacity()
		if err != nil {
			return err
		}
		for _, part := range []float64{.15, .3, .5} {
			if err := r.row(fmt.Sprintf("| %s | %.0f %% |", r.work, 100*part), func(r rig) string {
				r.open(part*rate, 1, time.Second) // the limiter learns the cost of a request
				r.open(rate, int(rate), 1)
				r.open(part*rate, int(rate/10), time.Second)
				return r.open(part*rate, int(rate/10), 3*length()).cell()
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// idleConnections wait for their next request while bursts come on others.
func idleConnections(r rig) error {
	const idle = 3000
	fmt.Printf("\n## Bursts beside %d idle connections\n\nRejected, and p99 of the others.\n\n| handler | burst | of the capacity |%s\n|---|---|---|%s\n", idle, header(), strings.Repeat("---|", len(limiters())))
	for _, r.work = range []string{"50us", "100us"} {
		rate, err := r.capacity()
		if err != nil {
			return err
		}
		for _, n := range []int{200, 300} {
			for _, part := range []float64{.15, .5} {
				if err := r.row(fmt.Sprintf("| %s | %d | %.0f %% |", r.work, n, 100*part), func(r rig) string {
					closeAll, err := r.hold(idle)
					defer closeAll()
					if err != nil {
						return err.Error()
					}
					r.open(part*rate, 1, time.Second) // the limiter learns the cost of a request
					return r.open(part*rate, n, max(length(), time.Duration(3*float64(n)/(part*rate)*1e9))).cell()
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func header() (s string) {
	for _, l := range limiters() {
		s += " " + l + " |"
	}
	return s
}

// row prints a cell for each limiter.
func (r rig) row(name string, cell func(rig) string) error {
	fmt.Print(name)
	for _, r.limiter = range limiters() {
		if err := r.with(func(r rig) error { fmt.Print(" ", cell(r), " |"); return nil }); err != nil {
			return err
		}
	}
	fmt.Println()
	return nil
}

func (c *counts) cell() string {
	s := fmt.Sprintf("%.1f %%, %v", 100*c.share(c.denied), c.p99().Round(time.Millisecond))
	if c.failed > 0 {
		s += fmt.Sprintf(", %d failed", c.failed)
	}
	return s
}

func closedLoops(r rig) error {
	fmt.Print("\n## Closed loops\n\nAnswers within 500 ms, per second.\n\n| handler | connections |", header(), "\n|---|---|", strings.Repeat("---|", len(limiters())), "\n")
	for _, r.work = range []string{"50us", "500us", "5ms"} {
		for _, n := range []int{64, 256, 1024} {
			if err := r.row(fmt.Sprintf("| %s | %d |", r.work, n), func(r rig) string {
				r.closed(n, time.Second/2)
				return fmt.Sprintf("%.0f", float64(r.closed(n, length()).good(slo))/length().Seconds())
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

func slowBodies(r rig) error {
	return r.beside("slow bodies", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n")
}

func eventStreams(r rig) error {
	return r.beside("event streams", "GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
}

// beside has few honest requests beside connections that wait for their clients,
// three new ones a second; a body ends after two seconds.
func (r rig) beside(what, head string) error {
	fmt.Printf("\n## Beside %s\n\nThree of them begin each second. Rejected of the honest requests, and p99.\n\n| honest requests a second |%s\n|---|%s\n", what, header(), strings.Repeat("---|", len(limiters())))
	r.work = "1ms"
	for _, rate := range []float64{.5, 5, 20} {
		if err := r.row(fmt.Sprintf("| %g |", rate), func(r rig) string {
			r.closed(1, time.Second)
			stop := make(chan struct{})
			go slowly(strings.TrimSuffix(strings.TrimPrefix(r.addr, "http://"), "/"), head, stop)
			defer close(stop)
			return r.open(rate, 1, max(length(), 10*time.Second)).cell()
		}); err != nil {
			return err
		}
	}
	return nil
}

// slowly begins three requests a second until stop is closed.
func slowly(addr, head string, stop chan struct{}) {
	for tick := time.NewTicker(time.Second / 3); ; {
		select {
		case <-stop:
			tick.Stop()
			return
		case <-tick.C:
			go func() {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					return
				}
				defer func() { _ = c.Close() }()
				_, _ = io.WriteString(c, head)
				select {
				case <-stop:
				case <-time.After(2 * time.Second):
					if strings.HasPrefix(head, "POST") {
						_, _ = io.WriteString(c, "x")
					}
					<-stop
				}
			}()
		}
	}
}

// listener compares rejections in the handler and at the socket.
func listener(r rig) error {
	fmt.Print("\n## Rejections at the socket\n\nAnswers within 50 ms, as a share of the capacity.\n\n| handler | load | handler | socket |\n|---|---|---|---|\n")
	r.work, r.limiter = "100us", "default"
	rate, err := r.capacity()
	if err != nil {
		return err
	}
	for _, times := range []float64{2, 5, 10} {
		fmt.Printf("| 100us | %gx |", times)
		for _, r.listener = range []bool{false, true} {
			if err := r.with(func(r rig) error {
				c, err := r.steady(.85*rate, times*rate)
				if err == nil {
					fmt.Printf(" %.2f |", float64(c.good(slo/10))/length().Seconds()/rate)
				}
				return err
			}); err != nil {
				return err
			}
		}
		fmt.Println()
	}
	return nil
}

// cores is the overload on several processors.
func cores(r rig) error {
	all, err := processors()
	if err != nil {
		return err
	}
	fmt.Print("\n## Several processors\n\nAnswers within 500 ms, as a share of the capacity; and p99 of all answers with status 200. At 0.85x also the rejections, at more the requests that got no answer in 2 s. Over HTTP/1.1 requests come at random instants from a generator that is cheap; over HTTP/2 and TLS from net/http's client, which takes more of the shared processors than the denials do, at even distances, after a second of a closed loop of 512, which opens the connections.\n\n| processors | protocol | handler | load | capacity, 1/s |", header(), "\n|---|---|---|---|---|", strings.Repeat("---|", len(limiters())), "\n")
	for _, r.procs = range all {
		for _, r.protocol = range strings.Split(*protos, ",") {
			for _, r.work = range strings.Split(*works, ",") {
				rate, err := r.capacity()
				if err != nil {
					return err
				}
				for _, times := range []float64{.85, 2, 5} {
					if err := r.row(fmt.Sprintf("| %d | %s | %s | %gx | %.0f |", r.procs, r.protocol, r.work, times, rate), func(r rig) string {
						return r.overloaded(times, rate)
					}); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// overloaded is the cell of a load: goodput, p99, and the rejections where there is room, else the
// requests without an answer.
func (r rig) overloaded(times, rate float64) string {
	c, err := r.steady(min(times, .85)*rate, times*rate)
	if err != nil {
		return err.Error()
	}
	s := fmt.Sprintf("%.2f, %v", float64(c.good(slo))/length().Seconds()/rate, c.p99().Round(time.Millisecond))
	if times < 1 {
		return s + fmt.Sprintf(", %.1f %%", 100*c.share(c.denied))
	}
	return s + fmt.Sprintf(", %.0f %%", 100*c.share(c.failed))
}
