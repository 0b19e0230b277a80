package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/bench/loadgen"
)

const (
	openBefore = 4000 // connections that the clients of the matrix have open before the overload
	mostOpen   = 16000
)

// rig is one server under test, and its clients. A limiter is "default", or with its way in:
// "default/listener" denies at the socket, "default/grpc" is gRPC, "default/tap" gRPC with a tap
// handle, "default/TLS", "default/HTTP/2" and "default/HTTP/2 of 100 clients" are net/http's client.
type rig struct {
	work, limiter, spin string
	args                []string // further ones of the server
	procs               int      // processors of the server; 0: as many as Go finds
	pinned              bool     // the server runs on processor 0
	group               string   // the control group of the server, or empty
	patience            time.Duration
	failure             *error // the first one of a table: what follows it is left out

	*server
	*sender
}

// flags of the server for a way in.
var flags = map[string][]string{
	"": nil, "listener": {"-listener"}, "grpc": {"-grpc"}, "tap": {"-grpc", "-tap"},
	"TLS": {"-tls"}, "HTTP/2": {"-tls"}, manyClients: {"-tls"},
}

func (r rig) name() string { name, _, _ := strings.Cut(r.limiter, "/"); return name }
func (r rig) way() string  { _, way, _ := strings.Cut(r.limiter, "/"); return way }

// as is the rig with another limiter and the same way in, but for the listener.
func (r rig) as(limiter string) rig {
	if way := r.way(); way != "" {
		limiter += "/" + way
	}
	r.limiter = limiter
	return r
}

func (r rig) transport() string {
	if r.way() == "grpc" || r.way() == "tap" {
		return "grpc"
	}
	return "http"
}

// with runs the server while do measures it.
func (r rig) with(do func(rig) error) (err error) {
	if r.server, err = startServer(r.command(*bin, slices.Concat([]string{"-work", r.work, "-limiter", r.name(), "-spin", r.spin}, flags[r.way()], r.args)...)); err != nil {
		return err
	}
	if r.sender, err = newSender(r.addr, r.way()); err != nil {
		return errors.Join(err, r.stop())
	}
	defer r.close()
	return errors.Join(do(r), r.stop())
}

func (r rig) command(bin string, args ...string) *exec.Cmd {
	cmd := exec.Command(bin, args...)
	switch {
	case r.pinned:
		cmd = exec.Command("taskset", append([]string{"-c", "0", bin}, args...)...)
	case r.group != "":
		cmd = exec.Command("sh", append([]string{"-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, r.group, bin}, args...)...)
	}
	if r.procs > 0 {
		cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", r.procs))
	}
	return cmd
}

// fast reports whether loadgen sends the requests: net/http's client takes more of the
// processors than the server's denials.
func (r rig) fast() bool { return r.way() == "" || r.way() == "listener" }

func (r rig) url() string { return "http://" + r.addr + "/" }

func (r rig) once() int16 { return r.send("", 0, r.patience) }

// run sends the phases. open is the number of connections that are there before.
func (r rig) run(open int, phases ...loadgen.Phase) ([]loadgen.Answer, error) {
	c := loadgen.Config{URL: r.url(), Timeout: r.patience, MaxOpen: mostOpen, Open: open, Seed: *seed, Phases: phases}
	if r.fast() {
		return loadgen.Run(c)
	}
	return loadgen.Paced(c, r.once), nil
}

// closed keeps n requests on their way.
func (r rig) closed(n int, d time.Duration) ([]loadgen.Answer, error) {
	if r.fast() {
		return loadgen.Closed(r.url(), n, d)
	}
	return loadgen.Loop(n, d, func(_ time.Time, took func(time.Time, int16)) error {
		began := time.Now()
		took(began, r.once())
		return nil
	})
}

// price is the server's processor time for a denial, in a closed loop of n connections, seconds.
func (r rig) price(n int, d time.Duration) (each float64, err error) {
	if _, err := r.closed(n, d/4); err != nil {
		return 0, err
	}
	before := r.cpu()
	all, err := r.closed(n, d)
	denied := count(all, rejected)
	if err == nil && denied == 0 {
		err = errors.New("nothing was denied")
	}
	return (r.cpu() - before).Seconds() / float64(max(denied, 1)), err
}

func served(a loadgen.Answer) bool   { return a.Status == http.StatusOK }
func rejected(a loadgen.Answer) bool { return a.Status > http.StatusOK }
func gaveUp(a loadgen.Answer) bool   { return a.Status < 0 }

func count(all []loadgen.Answer, is func(loadgen.Answer) bool) (n int) {
	for _, a := range all {
		if is(a) {
			n++
		}
	}
	return n
}

// share of answers for which is holds.
func share(all []loadgen.Answer, is func(loadgen.Answer) bool) float64 {
	return float64(count(all, is)) / float64(max(len(all), 1))
}

// in time are the answers within slo.
func inTime(slo time.Duration) func(loadgen.Answer) bool {
	return func(a loadgen.Answer) bool { return a.OK(slo) }
}
