package meter_test

import (
	"bytes"
	"context"
	"log"
	"testing"

	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

var bg, ctx = context.Background(), context.Background()

var must, peek, bucket = fakes.Acquire, fakes.Look, fakes.Bucket

type limiterFunc = fakes.Func

// captureLog returns what is logged.
func captureLog(t *testing.T, fn func()) string {
	t.Helper()
	var out bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&out)
	fn()
	return out.String()
}
