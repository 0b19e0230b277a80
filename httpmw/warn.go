package httpmw

import "github.com/sluice-go/sluice/internal/warning"

var (
	warnTwice = &warning.Once{Line: warning.Line{
		Code:    "httpmw.policy_twice",
		Message: "httpmw: a request passed two limits of the same name and size; one limiter that is wired twice charges every request twice",
		Do:      "wire it once; give two limiters two names",
	}}
	warnTimeout = &warning.Once{Line: warning.Line{
		Code:    "httpmw.timeout_inside",
		Message: "httpmw: http.TimeoutHandler inside a concurrency limit answers while its handler continues without a slot",
		Do:      "put the limit inside the TimeoutHandler",
	}}
	warnRebuilt = &warning.Once{Line: warning.Line{
		Code:    "httpmw.built_per_request",
		Message: "httpmw: nearly every middleware has served one request only",
		Do:      "build the middleware once, not for each request",
	}}
)
