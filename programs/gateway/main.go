// Command gateway is a reverse proxy that keeps clients to limits. Its routes,
// keys and limits come from one YAML file, which it reads again when it
// changes, or on SIGHUP, without forgetting any debt.
//
//	gateway -config gateway.yaml          serve
//	gateway -config gateway.yaml -check   print the mistakes of the file
//	gateway -config gateway.yaml -health  ask the running gateway whether it is ready
//	gateway -demo                         try it, with an upstream of its own
//	gateway -version
//
// The README beside it has the fields of the file.
package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/sluice-go/sluice/programs/gateway/command"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/gateway/proxy"
)

var gateway = command.Command{
	Name: "gateway",
	About: func(f *config.File) (string, error) {
		if len(f.Routes) == 0 {
			return "", f.Errorf("routes", "is missing, and a gateway without routes serves nothing")
		}
		about := fmt.Sprintf("%d routes", len(f.Routes))
		for _, l := range proxy.Limits(f) {
			about += fmt.Sprintf("\n  %s: %s", l.Name, l.Spec)
			if d, err := l.Spec.With(); err == nil && d.Rate.Period > 0 {
				about += fmt.Sprintf(" (%.4g/s)", float64(d.Rate.Count)/d.Rate.Period.Seconds())
			}
			if l.Shadow {
				about += ", on trial"
			}
		}
		return about, nil
	},
	Demo: demo,
	New: func(f *config.File, log *slog.Logger, out io.Writer) (command.Service, error) {
		return newServer(f, log, out)
	},
}

func main() { gateway.Main() }
