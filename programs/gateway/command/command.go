// Package command is the command line of a service that runs from one file.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
	_ "time/tzdata" // an image from scratch has no time zones

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo/telemetry/eventlog"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/gateway/ops"
)

// Service is the service that a command runs until ctx ends. It looks at the file every
// poll, and whenever something comes from hup.
type Service interface {
	Serve(ctx context.Context, poll time.Duration, hup <-chan os.Signal) error
}

// Command is a command with the flags -config, -check, -poll, -log, -health, -version
// and, where there is a Demo, -demo.
type Command struct {
	Name  string                             // the file is Name.yaml by default
	About func(*config.File) (string, error) // a summary of the file, or why it is insufficient
	// New makes the service of a sufficient file. Its log goes to stderr; out is stdout.
	New func(f *config.File, log *slog.Logger, out io.Writer) (Service, error)
	// Sent, if not nil, compares a sufficient file with requests that callers send, and describes what it read.
	Sent func(f *config.File, path string) (about string, err error)
	// Demo prepares everything to try the command in a folder of its own: a file
	// and, until ctx ends, the services that the file needs. about suggests
	// requests to try.
	Demo func(ctx context.Context, folder string) (path, about string, err error)

	everywhere func(*slog.Logger) // makes a log that of the process
}

// Main runs the command and ends the process. Interrupted or terminated, the
// service stops in order; a second signal ends the process at once.
func (c Command) Main() {
	c.everywhere = func(log *slog.Logger) {
		slog.SetDefault(log)
		slog.SetLogLoggerLevel(slog.LevelWarn) // lines of package log
		eventlog.Warnings(log)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	os.Exit(c.Run(ctx, os.Args[1:], os.Stdout, os.Stderr, hup))
}

// clientLog gives the lines of the Redis client the format of the log. They
// repeat the store's own reports, so they are for debugging.
type clientLog struct{ log *slog.Logger }

func (l clientLog) Printf(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, "redis client", "detail", fmt.Sprintf(format, args...))
}

// Run runs the command with args and returns its exit status: 0, 1 if the file
// is wrong or the service fails, 2 if args are wrong.
func (c Command) Run(ctx context.Context, args []string, stdout, stderr io.Writer, hup <-chan os.Signal) int {
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("config", c.Name+".yaml", "the file")
	check := flags.Bool("check", false, "check the file and exit: status 1 if it is wrong")
	poll := flags.Duration("poll", 2*time.Second, "how often the file is looked at for changes")
	format := flags.String("log", "text", "text or json: the lines of the log")
	health := flags.Bool("health", false, "ask the running process whether it is ready and exit: status 1 if it is not")
	version := flags.Bool("version", false, "print the version and exit")
	demo, sent := new(bool), new(string)
	if c.Sent != nil {
		sent = flags.String("sent", "", "with -check: a file of requests that are sent, one in JSON on each line: status 1 if one has no limit")
	}
	if c.Demo != nil {
		demo = flags.Bool("demo", false, "try it: a file and all that it needs, on this machine")
	}
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *version {
		fmt.Fprintln(stdout, c.Name, ops.Version())
		return 0
	}
	if *poll <= 0 {
		fmt.Fprintf(stderr, "%s: -poll is %v, want more than 0\n", c.Name, *poll)
		return 2
	}
	log, err := newLog(*format, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", c.Name, err)
		return 2
	}
	if c.everywhere != nil {
		c.everywhere(log)
	}
	if *demo {
		done, err := c.demonstrate(ctx, path, stdout)
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
		defer done()
	}
	f, about, err := c.load(*path)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if *check {
		if len(f.Warnings) > 0 {
			fmt.Fprintln(stdout, f.Warnings)
		}
		if *sent != "" {
			read, err := c.Sent(f, *sent)
			if err != nil {
				fmt.Fprintln(stderr, err)
				return 1
			}
			about += "\n" + *sent + ": ok, " + read
		}
		fmt.Fprintf(stdout, "%s: ok, %s\n", *path, about)
		return 0
	}
	if *health {
		return askHealth(ctx, f.Admin, stdout)
	}
	return c.serve(ctx, f, *poll, log, stdout, stderr, hup)
}

// demonstrate prepares a demo; done removes it.
func (c Command) demonstrate(ctx context.Context, path *string, stdout io.Writer) (done func(), err error) {
	folder, err := os.MkdirTemp("", c.Name+"-demo-")
	if err != nil {
		return nil, err
	}
	var about string
	if *path, about, err = c.Demo(ctx, folder); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	fmt.Fprintln(stdout, about)
	return func() { _ = os.RemoveAll(folder) }, nil
}

func (c Command) load(path string) (f *config.File, about string, err error) {
	if f, err = config.Load(path); err == nil {
		about, err = c.About(f)
	}
	return f, about, err
}

// hashUnder gives keys the same hashes on the page, in the log and in metrics of all
// processes with this pepper. Another pepper takes a restart, so that a hash that
// was read stays good.
func hashUnder(f *config.File) error {
	pepper, err := f.Pepper.Read()
	if err != nil {
		return f.Errorf("pepper", "%v", err)
	}
	if pepper != nil {
		keyfunc.SetHashPepper(pepper)
	}
	return nil
}

func (c Command) serve(ctx context.Context, f *config.File, poll time.Duration, log *slog.Logger, stdout, stderr io.Writer, hup <-chan os.Signal) int {
	redis.SetLogger(clientLog{log})
	if err := hashUnder(f); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	s, err := c.New(f, log, stdout)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if err := s.Serve(ctx, poll, hup); err != nil {
		log.Error(c.Name+" failed", "error", err)
		return 1
	}
	return 0
}
