package grpcmw

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// failures limits the log of undecided calls to one line in 10 s.
var failures struct{ last atomic.Int64 }

const failureInterval = 10 * time.Second

// logFailure reports why calls cannot be decided; the client never sees it.
func logFailure(policy string, err error) {
	now, last := time.Now().UnixNano(), failures.last.Load()
	if now-last >= int64(failureInterval) && failures.last.CompareAndSwap(last, now) {
		slog.Error("a call could not be decided", "code", "grpcmw.undecided", "policy", policy, "error", err)
	}
}
