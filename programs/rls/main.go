// Command rls is a rate limit service for Envoy and for whatever else speaks
// envoy.service.ratelimit.v3. Its limits come from the domains of a file like
// the gateway's, which it reads again when it changes, or on SIGHUP, without
// forgetting what anybody owes.
//
//	rls -config rls.yaml          serve
//	rls -config rls.yaml -check   report errors in the file
//	rls -config rls.yaml -check -sent requests.json    and requests without a limit
package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/sluice-go/sluice/programs/gateway/command"
	"github.com/sluice-go/sluice/programs/gateway/config"
)

var rateLimits = command.Command{
	Name: "rls",
	About: func(f *config.File) (string, error) {
		if len(f.Domains) == 0 {
			return "", f.Errorf("domains", "is missing, and a rate limit service without domains limits nothing")
		}
		return fmt.Sprintf("%d domains", len(f.Domains)), nil
	},
	Sent: checkSent,
	New:  func(f *config.File, log *slog.Logger, _ io.Writer) (command.Service, error) { return newServer(f, log) },
}

func main() { rateLimits.Main() }
