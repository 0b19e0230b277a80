package client

import "time"

// WaitUntilMore is the wait that the lines of a RateLimit field ask for.
func WaitUntilMore(lines ...string) time.Duration { return waitUntilMore(lines) }
