package eventlog

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/internal/warning"
)

// Warnings makes l the log of the problems that this module finds in the use of its packages, such
// as a full table of keys. Each is a line at the level Warn with the attributes code, those of the
// case, such as limit, and do, the remedy; the troubleshooting guide lists them. Without it, or
// with nil, they are lines of package log, which slog.SetDefault makes Info lines without
// attributes. It applies to the whole process.
func Warnings(l *slog.Logger) {
	if l == nil {
		warning.To(nil)
		return
	}
	write := func(line *warning.Line, of []string) {
		attrs := []slog.Attr{slog.String("code", line.Code)}
		for a := range slices.Chunk(of, 2) {
			if strings.ContainsFunc(a[1], func(r rune) bool { return r < ' ' || r > '~' }) {
				a[1] = clean(a[1])
			}
			attrs = append(attrs, slog.String(a[0], a[1]))
		}
		l.LogAttrs(context.Background(), slog.LevelWarn, line.Message, append(attrs, slog.String("do", line.Do))...)
	}
	warning.To(&write)
}
