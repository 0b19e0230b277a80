package main

import (
	"io"
	"log/slog"

	"github.com/zeromicro/go-zero/core/load"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stat"
)

// quiet keeps libraries from logging: the attacks cause their warnings, and
// go-zero reports on itself every minute.
func quiet() {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	logx.Disable()
	load.DisableLog()
	stat.DisableLog()
}
