package loadgen

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serve runs h behind net/http.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/"
}

func done(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "done\n") }

// script answers each request on each connection with the same bytes, and hangs
// up after the answer if once.
func script(t *testing.T, answer string, once bool) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go recite(c, answer, once)
		}
	}()
	return "http://" + ln.Addr().String() + "/"
}

func recite(c net.Conn, answer string, once bool) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		if _, err := io.WriteString(c, answer); err != nil || once {
			return
		}
	}
}

// shortly is a load of n requests or so within a fifth of a second.
func shortly(url string, n float64) Config {
	return Config{
		URL: url, Timeout: time.Minute, MaxOpen: 1000, Seed: 1,
		Phases: []Phase{{Rate: 5 * n, Duration: 200 * time.Millisecond}},
	}
}

// statuses counts the answers by status.
func statuses(all []Answer) map[int16]int {
	n := map[int16]int{}
	for _, a := range all {
		n[a.Status]++
	}
	return n
}
