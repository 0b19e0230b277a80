package reload

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/warning"
)

const every = 2 * time.Second

// Open returns the limits of a file and follows the file until ctx ends. The error is the one of
// reading the file, or names the wrong limits.
func Open(ctx context.Context, path string, c Config) (*Limits, error) {
	l := New(c)
	data, err := os.ReadFile(path)
	if err == nil {
		_, err = l.load(data)
	}
	if err != nil {
		return nil, err
	}
	w := NewWatcher(path, string(data), l.config.Logger, func() (string, error) {
		data, err := os.ReadFile(path)
		return string(data), err
	}, func() (string, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		changes, err := l.load(data)
		if err == nil {
			l.config.Logger.Info("reload: limits loaded", "file", path, "changes", changes)
		}
		return string(data), err
	})
	go w.Run(ctx, every, nil)
	return l, nil
}

func (l *Limits) load(data []byte) (Changes, error) {
	specs, err := l.config.Decode(data)
	if err != nil {
		return Changes{}, err
	}
	return l.Apply(specs, nil)
}

// decoder reads JSON. It does not parse unchanged limits again, which would take most of the time
// for a large file.
func decoder() func(data []byte) (map[string]algo.Spec, error) {
	type limit struct {
		text string
		spec algo.Spec
	}
	before := map[string]limit{}
	return func(data []byte) (map[string]algo.Spec, error) {
		var texts map[string]json.RawMessage
		if err := json.Unmarshal(data, &texts); err != nil {
			return nil, err
		}
		now, specs := make(map[string]limit, len(texts)), make(map[string]algo.Spec, len(texts))
		for name, text := range texts {
			one := before[name]
			if one.text != string(text) {
				one = limit{text: string(text)}
				if err := json.Unmarshal(text, &one.spec); err != nil {
					return nil, fmt.Errorf("reload: limit %q: %w", name, err)
				}
			}
			now[name], specs[name] = one, one.spec
		}
		before = now
		return specs, nil
	}
}

// Status is the state of a file.
type Status struct {
	File     string    `json:"file"`
	LoadedAt time.Time `json:"loaded_at"` // the contents in force
	Reloads  int       `json:"reloads"`
	// Failed is why the contents on disk are not in force; empty if they are.
	Failed   string    `json:"failed,omitempty"`
	FailedAt time.Time `json:"failed_at,omitzero"`
}

// Watcher puts a file in force again whenever its contents change. It reads them each time, because
// orchestrators replace files through symbolic links, which hides the time of the change.
type Watcher struct {
	look, load func() (string, error)
	log        *slog.Logger

	mu     sync.Mutex
	status Status
	seen   string // fingerprint of the contents that were tried last
}

// NewWatcher watches a file whose contents with the fingerprint seen are in force. look returns the
// fingerprint of the contents on disk. load puts them in force as a whole or not at all, and
// returns the fingerprint of what it read, or "" for look's.
func NewWatcher(file, seen string, log *slog.Logger, look, load func() (string, error)) *Watcher {
	return &Watcher{look: look, load: load, log: log, seen: seen, status: Status{File: file, LoadedAt: time.Now()}}
}

// Run looks at the file every interval, and with force whenever now receives, until ctx ends.
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

// Look loads new contents, or any with force. Contents that fail to load change nothing: Look logs
// them, once for each version, and keeps the error in the [Status].
func (w *Watcher) Look(force bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, err := w.look()
	if err != nil {
		seen = "unreadable: " + err.Error()
	}
	if seen == w.seen && !force {
		return
	}
	w.seen = seen
	if err == nil {
		if seen, err = w.load(); seen != "" {
			w.seen = seen
		}
	}
	if err != nil {
		const most = 4096 // bytes: a file may have many mistakes
		w.status.Failed, w.status.FailedAt = warning.Clip(err.Error(), most), time.Now()
		w.log.Error("configuration not loaded, the old one stays in force", "file", w.status.File, "error", w.status.Failed)
		return
	}
	w.status.LoadedAt, w.status.Failed, w.status.FailedAt = time.Now(), "", time.Time{}
	w.status.Reloads++
}

// Status returns the state of the file.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}
