package command

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/sluice-go/sluice/programs/gateway/config"
)

// LogOptions cut long values of the log's lines, which may come from a client, an upstream or Redis, and
// give the library's messages the names of the file.
var LogOptions = &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
	const most = 4096 // bytes
	if a.Key == slog.MessageKey || a.Key == "do" {
		return slog.String(a.Key, config.InFile.Replace(a.Value.String()))
	}
	if k := a.Value.Kind(); k == slog.KindString || k == slog.KindAny {
		if s := a.Value.String(); len(s) > most {
			return slog.String(a.Key, s[:most]+"...")
		}
	}
	return a
}}

// newLog makes the log of the process.
func newLog(format string, to io.Writer) (*slog.Logger, error) {
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(to, LogOptions)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(to, LogOptions)), nil
	}
	return nil, fmt.Errorf("-log is %q, want text or json", format)
}
