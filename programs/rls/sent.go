package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/rls/service"
)

// checkSent compares f with the requests in a file, one on each line, as /json takes them: every descriptor has a
// limit, or is said to be unlimited.
func checkSent(f *config.File, path string) (about string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	limits, err := service.New(f, service.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", err
	}
	requests := 0
	for i, line := range strings.Split(string(text), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		requests++
		var r rls.RateLimitRequest
		wrong := []error{protojson.Unmarshal([]byte(line), &r)}
		if wrong[0] == nil {
			wrong = limits.Missing(&r)
		}
		for _, one := range wrong {
			err = errors.Join(err, fmt.Errorf("%s:%d: %w", path, i+1, one))
		}
	}
	return fmt.Sprintf("%d requests", requests), err
}
