package live

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/sluice-go/sluice/examples/gateway/config"
)

// Status is the state of the file, for operators.
type Status struct {
	File     string    `json:"file"`
	Hash     string    `json:"hash"` // of the contents in force
	LoadedAt time.Time `json:"loaded_at"`
	Reloads  int       `json:"reloads"`
	// Failed is why the contents on disk are not in force; empty if they are.
	Failed   string    `json:"failed,omitempty"`
	FailedAt time.Time `json:"failed_at,omitzero"`
}

// Watcher puts the contents of a file in force, again whenever they, or those of
// a file that it names, change. It reads the files each time and compares the contents,
// because the time of a file says nothing when it is replaced through a symbolic link, as
// orchestrators do; files of this kind are read in microseconds.
type Watcher struct {
	path  string
	apply func(*config.File) error
	log   *slog.Logger

	mu      sync.Mutex
	status  Status
	seen    string       // fingerprint of the contents that were tried last
	secrets string       // the same of the secrets
	file    *config.File // tried last
}

// NewWatcher watches the file that f was read from, which is in force.
func NewWatcher(f *config.File, log *slog.Logger, apply func(*config.File) error) *Watcher {
	return &Watcher{
		path: f.Path, apply: apply, log: log, seen: f.Hash, secrets: f.Secrets, file: f,
		status: Status{File: f.Path, Hash: f.Hash, LoadedAt: time.Now()},
	}
}

// Run looks at the file in each interval, and at once whenever now receives,
// until ctx ends.
func (w *Watcher) Run(ctx context.Context, interval time.Duration, now <-chan os.Signal) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.Look(false)
		case <-now:
			w.Look(true)
		}
	}
}

// Look reads the file and applies contents that are new, or any with force. A
// file that cannot be applied changes nothing: it is logged, once for each
// contents, and kept in the [Status].
func (w *Watcher) Look(force bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	data, err := os.ReadFile(w.path)
	var hash string
	if err == nil {
		hash, err = config.Fingerprint(data, w.file.EnvoyFiles)
	}
	if err != nil {
		hash = "unreadable: " + err.Error()
	}
	secrets := w.file.SecretsNow()
	if hash == w.seen && secrets == w.secrets && !force {
		return
	}
	w.seen, w.secrets = hash, secrets
	if err == nil {
		err = w.load(data)
	}
	if err != nil {
		w.status.Failed, w.status.FailedAt = err.Error(), time.Now()
		w.log.Error("configuration not loaded, the old one stays in force", "file", w.path, "error", err)
		return
	}
	w.status.Hash, w.status.LoadedAt = w.seen, time.Now()
	w.status.Failed, w.status.FailedAt = "", time.Time{}
	w.status.Reloads++
}

func (w *Watcher) load(data []byte) error {
	f, err := config.Parse(w.path, data)
	if err != nil {
		return err
	}
	w.file, w.seen, w.secrets = f, f.Hash, f.Secrets
	return w.apply(f)
}

// Status is the configuration in force, and the mistakes of the file if it is not in force.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}
