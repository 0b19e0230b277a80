package command

import "log/slog"

// LogOptions cut long values of the log's lines, which may come from a client, an upstream or Redis.
var LogOptions = &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
	const most = 4096 // bytes
	if k := a.Value.Kind(); k == slog.KindString || k == slog.KindAny {
		if s := a.Value.String(); len(s) > most && a.Key != slog.MessageKey { // which has stacks
			return slog.String(a.Key, s[:most]+"...")
		}
	}
	return a
}}
