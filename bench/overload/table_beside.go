package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/sluice-go/sluice/bench/loadgen"
)

func slowBodies(r rig) {
	r.beside("slow bodies", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n")
}

func eventStreams(r rig) {
	r.beside("event streams", "GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
}

// beside has few honest requests beside connections that wait for their clients,
// three new ones a second; a body ends after two seconds.
func (r rig) beside(what, head string) {
	begin("Beside "+what+"\n\nThree of them begin each second. Rejected of the honest requests, and p99.", "honest requests a second")
	r.work = "1ms"
	for _, rate := range []float64{.5, 5, 20} {
		r.row(fmt.Sprint(rate), func(r rig) (string, error) {
			if _, err := r.closed(1, time.Second); err != nil {
				return "", err
			}
			stop := make(chan struct{})
			go slowly(r.addr, head, stop)
			defer close(stop)
			return summary(r.run(0, loadgen.Phase{Rate: rate, Burst: 1, Duration: max(length(), 10*time.Second)}))
		})
	}
}

// slowly begins three requests a second until stop is closed.
func slowly(addr, head string, stop chan struct{}) {
	tick := time.NewTicker(time.Second / 3)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			go slow(addr, head, stop)
		}
	}
}

func slow(addr, head string, stop chan struct{}) {
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
}
