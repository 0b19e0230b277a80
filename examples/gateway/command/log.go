package command

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"regexp"
	"strings"
)

// useLog makes the log of the process the place of the library's warnings, which come through
// package log, and of other packages' lines.
func useLog(to io.Writer) *slog.Logger {
	l := slog.New(slog.NewTextHandler(to, nil))
	slog.SetDefault(l)
	log.SetFlags(0)
	log.SetOutput(warnings{l})
	return l
}

// warnings makes lines of package log warnings of slog.
type warnings struct{ log *slog.Logger }

var (
	coded = regexp.MustCompile(`^(.*): code=(\S+)(.*)$`)
	pair  = regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*"|\S*)`)
)

// Write logs a line. That of a warning of the library, "what: remedy: code=a.b name=value", becomes
// attributes: code, its own, and do, the remedy.
func (w warnings) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	var attrs []slog.Attr
	if m := coded.FindStringSubmatch(text); m != nil {
		text = m[1]
		attrs = append(attrs, slog.String("code", m[2]))
		for _, p := range pair.FindAllStringSubmatch(m[3], -1) {
			attrs = append(attrs, slog.String(p[1], unquoted(p[2])))
		}
		if what, remedy, ok := cutLast(text, ": "); ok && strings.Contains(what, ": ") {
			text = what
			attrs = append(attrs, slog.String("do", remedy))
		}
	}
	w.log.LogAttrs(context.Background(), slog.LevelWarn, text, attrs...)
	return len(line), nil
}

func unquoted(s string) string {
	var plain string
	if n, err := fmt.Sscanf(s, "%q", &plain); n == 1 && err == nil {
		return plain
	}
	return s
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
