package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDrive: every user is admitted the burst and the refilled units, over both
// transports. run itself fails where that is not so.
func TestDrive(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), &out, []string{"-exit", "-http", "127.0.0.1:0", "-grpc", "127.0.0.1:0"}))
	for _, row := range []string{
		`(?m)^alice +http +39 +\d+ +\d+ +10 \+ \d+ +200 OK, RateLimit: "5-per-second-burst-10";r=9;t=1 +429 .*Retry-After: \d+$`,
		`(?m)^alice +grpc +39 +\d+ +\d+ +10 \+ \d+ +OK +ResourceExhausted, RetryInfo: \d+\.\dms, grpc-retry-pushback-ms: \d+$`,
		`(?m)^bob +http +20 `, `(?m)^bob +grpc +20 `,
		`(?m)^carol +http +8 +8 +0 `, `(?m)^carol +grpc +8 +8 +0 `,
	} {
		require.Regexp(t, regexp.MustCompile(row), out.String())
	}
}

// TestServes: without -exit it goes on serving until its context ends.
func TestServes(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	address := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, &watch{found: address}, []string{"-http", "127.0.0.1:0", "-grpc", "127.0.0.1:0"})
	}()
	select {
	case url := <-address:
		response, err := http.Get(url)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
	case err := <-ended:
		t.Fatal("it ended before it said where it serves: ", err)
	case <-time.After(time.Minute):
		t.Fatal("it did not say where it serves")
	}
	cancel()
	require.NoError(t, <-ended)
}

// watch finds the first URL that is printed with the hints.
type watch struct {
	text  strings.Builder
	found chan string
}

var curl = regexp.MustCompile(`curl .*(http://\S+/hello)\n`)

func (w *watch) Write(p []byte) (int, error) {
	w.text.Write(p)
	if m := curl.FindStringSubmatch(w.text.String()); m != nil {
		select {
		case w.found <- m[1]:
		default:
		}
	}
	return len(p), nil
}

func TestBadArguments(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for want, args := range map[string][]string{
		"missing port in address":   {"-http", "nonsense"},
		"address already in use":    {"-http", taken.Addr().String()},
		"flag provided but not def": {"-port", "80"},
		"unexpected argument":       {"now"},
		"invalid port":              {"-http", "127.0.0.1:0", "-grpc", "127.0.0.1:123456"},
	} {
		var out bytes.Buffer
		err := run(context.Background(), &out, args)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
		require.Empty(t, out.String())
	}
}
