package accesslog

import (
	"errors"
	"strings"
)

// envoyLine is the default text format of Envoy:
//
//	[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE%
//	%RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%
//	"%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%"
//
// It has no address of the connecting peer, only what the client sent as X-Forwarded-For.
type envoyLine struct{ values [len(envoyFields)]string }

var envoyFields = [...]string{"start_time", "request", "response_code", "response_flags", "bytes_received", "bytes_sent", "duration",
	"upstream_service_time", "x_forwarded_for", "user_agent", "request_id", "authority", "upstream_host", "method", "path", "protocol"}

func (l *envoyLine) parse(text string) (err error) {
	l.values = [len(envoyFields)]string{}
	at, rest, ok := strings.Cut(strings.TrimPrefix(text, "["), "] ")
	if !ok || !strings.HasPrefix(text, "[") {
		return errors.New("no time in [brackets] at the start, want the format of Envoy")
	}
	l.values[0] = at
	for i := 1; i < 13; i++ {
		if rest == "" {
			return errors.New("fewer fields than the default format of Envoy has")
		}
		if l.values[i], rest, err = token(rest); err != nil {
			return err
		}
	}
	if words := strings.Split(l.values[1], " "); len(words) == 3 {
		copy(l.values[13:], words)
	}
	return nil
}

func (l *envoyLine) get(name string) (string, bool) { return column(envoyFields[:], l.values[:], name) }

func (l *envoyLine) fields() (all []string) {
	for i, value := range &l.values {
		if value != "" && value != "-" {
			all = append(all, envoyFields[i])
		}
	}
	return all
}
