package live

import (
	"log/slog"
	"os"

	"github.com/sluice-go/sluice/algo/reload"
	"github.com/sluice-go/sluice/programs/gateway/config"
)

// NewWatcher watches the file that f was read from, which is in force, and those that it names.
func NewWatcher(f *config.File, log *slog.Logger, apply func(*config.File) error) *reload.Watcher {
	seen := func(hash string) string { return hash + f.SecretsNow() }
	return reload.NewWatcher(f.Path, f.Hash+f.Secrets, log, func() (string, error) {
		data, err := os.ReadFile(f.Path)
		if err != nil {
			return "", err
		}
		hash, err := config.Fingerprint(data, f.EnvoyFiles)
		return seen(hash), err
	}, func() (string, error) {
		next, err := config.Load(f.Path)
		if err != nil {
			return "", err
		}
		f = next
		return f.Hash + f.Secrets, apply(f)
	})
}
