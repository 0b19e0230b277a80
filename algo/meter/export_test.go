package meter

import "github.com/sluice-go/sluice/internal/warning"

// ResetWarnings makes the next problem of a kind be logged again.
func ResetWarnings() {
	warning.NegativeUsage.Reset()
	warnSettledTwice.Reset()
}
