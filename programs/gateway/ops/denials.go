package ops

import (
	"errors"
	"log/slog"

	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/algo/telemetry/eventlog"
)

// Denials logs denials of the limits, a few lines for each key. Lines about a key
// that an operator has blocked have the attribute blocked.
type Denials struct {
	panel           *Panel
	limits, blocked *eventlog.Log
}

// NewDenials makes a log of denials; panel knows which keys are blocked.
func NewDenials(log *slog.Logger, panel *Panel) (*Denials, error) {
	limits, err := eventlog.New(log)
	blocked, errBlocked := eventlog.New(log.With("blocked", true))
	return &Denials{panel, limits, blocked}, errors.Join(err, errBlocked)
}

// Observe is a telemetry.Observer.
func (d *Denials) Observe(e telemetry.Event) {
	if d.panel.IsBlocked(&e) {
		d.blocked.Observe(e)
		return
	}
	d.limits.Observe(e)
}

// Flush writes the counts that are not yet written.
func (d *Denials) Flush() {
	d.limits.Flush()
	d.blocked.Flush()
}
