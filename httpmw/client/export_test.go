package client

import "time"

// WaitUntilMore is the wait that a RateLimit field asks for.
func WaitUntilMore(field string) time.Duration { return waitUntilMore([]string{field}) }
