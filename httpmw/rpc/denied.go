// Package rpc answers denied requests of gRPC, gRPC-Web and Connect in their own protocol, where
// a server of net/http serves them:
//
//	handler = httpmw.Limit(l, key, httpmw.WithDenied(rpc.Denied(nil)))(grpcServer)
//
// Do not use it beside package grpcmw on the same server: one limit for each call is enough.
package rpc

import (
	"encoding/binary"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
)

// Denied makes a handler for httpmw.WithDenied. It answers a call in its protocol with
// RESOURCE_EXHAUSTED for 429, UNAVAILABLE for 503, UNAUTHENTICATED for 401, PERMISSION_DENIED
// for 403 and INVALID_ARGUMENT for any other status below 500. The message depends only on the
// decision. Over gRPC it sends the trailer grpc-retry-pushback-ms (gRFC A6): the wait of
// Retry-After-Ms, or -1 without one or if the deadline of the call comes first. Unlike package
// grpcmw it sends no details.
//
// Denied passes requests of other protocols to other; if other is nil, it answers them in plain
// text.
func Denied(other http.Handler) http.Handler {
	if other == nil {
		other = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			d, _ := httpmw.DenialFrom(r.Context())
			http.Error(w, message(d), d.Status)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, denied := httpmw.DenialFrom(r.Context())
		kind, contentType := protocolOf(r)
		if !denied || kind == plainHTTP {
			other.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", contentType)
		number, code := codeOf(d.Status)
		status, body := http.StatusOK, ""
		switch kind {
		case grpc:
			// An answer without a body, whose header fields are the trailers too
			// ("Trailers-Only"): metadata sent before would keep the client from
			// retrying.
			w.Header().Set("Grpc-Status", number)
			w.Header().Set("Grpc-Message", message(d))
			w.Header().Set("Grpc-Retry-Pushback-Ms", pushback(w.Header(), r))
		case connectUnary:
			status, body = d.Status, connectError(code, message(d))
		case connectStream:
			body = endOfStream(`{"error":` + connectError(code, message(d)) + `}`)
		}
		w.WriteHeader(status)
		if body != "" && r.Method != http.MethodHead {
			_, _ = io.WriteString(w, body) // best effort: the client may be gone
		}
	})
}

// message returns the text for a denial, without input from the client.
func message(d httpmw.Denial) string {
	switch {
	case d.Status >= http.StatusInternalServerError:
		return "the server cannot take the call at the moment"
	case d.Status != http.StatusTooManyRequests:
		return "the call lacks the identity that its rate limit counts by"
	case d.Decision.Reason == algo.Banned:
		return "the caller is banned"
	case d.Decision.Reason == algo.Never:
		return "the call costs more than its rate limit can ever admit"
	}
	return "rate limit exceeded"
}

// codeOf returns the gRPC code for status, as a number and as Connect writes it.
func codeOf(status int) (number, text string) {
	switch {
	case status == http.StatusTooManyRequests:
		return "8", "resource_exhausted"
	case status == http.StatusUnauthorized:
		return "16", "unauthenticated"
	case status == http.StatusForbidden:
		return "7", "permission_denied"
	case status < http.StatusInternalServerError:
		return "3", "invalid_argument"
	}
	return "14", "unavailable"
}

// connectError returns a Connect error in JSON.
func connectError(code, message string) string {
	return `{"code":"` + code + `","message":"` + message + `"}`
}

// endOfStream wraps the last message of a Connect stream: flags, length,
// message.
func endOfStream(message string) string {
	const lastMessage = 0b10
	b := binary.BigEndian.AppendUint32([]byte{lastMessage}, uint32(len(message)))
	return string(append(b, message...))
}

// pushback returns grpc-retry-pushback-ms for the wait in the fields of the answer.
func pushback(h http.Header, r *http.Request) string {
	ms, err := strconv.ParseInt(h.Get("Retry-After-Ms"), 10, 64)
	if err != nil { // httpmw.WithHeaders(httpmw.None)
		seconds, err := strconv.ParseInt(h.Get("Retry-After"), 10, 32)
		if err != nil {
			return "-1"
		}
		ms = seconds * 1000
	}
	if ms >= timeLeft(r).Milliseconds() {
		return "-1"
	}
	return strconv.FormatInt(min(ms, math.MaxInt32), 10)
}

// timeLeft returns the time until the deadline of the call.
func timeLeft(r *http.Request) time.Duration {
	left := algo.Forever
	if deadline, ok := r.Context().Deadline(); ok {
		left = time.Until(deadline)
	}
	if s := r.Header.Get("Grpc-Timeout"); s != "" {
		unit := map[byte]string{'H': "h", 'M': "m", 'S': "s", 'm': "ms", 'u': "us", 'n': "ns"}[s[len(s)-1]]
		if timeout, err := time.ParseDuration(s[:len(s)-1] + unit); err == nil {
			left = min(left, timeout)
		}
	}
	return left
}

// protocol is the protocol of a request on top of HTTP.
type protocol uint8

const (
	plainHTTP     protocol = iota
	grpc                   // gRPC and gRPC-Web: a status in header fields
	connectUnary           // an HTTP status and JSON
	connectStream          // an end-of-stream envelope
)

// The content types that are answered with themselves; the codec has to be
// the one of the request for some clients. No other text of the request is
// sent back.
var contentTypes = []string{
	"application/grpc", "application/grpc+proto", "application/grpc+json",
	"application/grpc-web", "application/grpc-web+proto", "application/grpc-web+json",
	"application/grpc-web-text", "application/grpc-web-text+proto",
	"application/connect+proto", "application/connect+json",
}

// protocolOf returns the protocol of a request, and the content type of its answer.
func protocolOf(r *http.Request) (kind protocol, contentType string) {
	sent, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	sent = strings.ToLower(strings.TrimSpace(sent))
	for _, family := range [...]struct {
		name     string
		kind     protocol
		standard string
	}{
		{"application/grpc-web-text", grpc, "application/grpc-web-text"},
		{"application/grpc-web", grpc, "application/grpc-web"},
		{"application/grpc", grpc, "application/grpc"},
		{"application/connect", connectStream, "application/connect+proto"},
	} {
		codec, ok := strings.CutPrefix(sent, family.name)
		if ok && (codec == "" && family.kind == grpc || strings.HasPrefix(codec, "+")) {
			if slices.Contains(contentTypes, sent) {
				return family.kind, sent
			}
			return family.kind, family.standard
		}
	}
	if isConnectUnary(r) {
		return connectUnary, "application/json"
	}
	return plainHTTP, ""
}

// maxQuery is the longest query that is searched.
const maxQuery = 1 << 16

// isConnectUnary: calls have the version in a field, calls by GET in the query.
// Calls without a version look like plain HTTP, whose answers Connect clients
// understand too.
func isConnectUnary(r *http.Request) bool {
	if r.Header.Get("Connect-Protocol-Version") == "1" {
		return true
	}
	if r.Method != http.MethodGet || r.URL == nil || len(r.URL.RawQuery) > maxQuery {
		return false
	}
	return slices.Contains(strings.Split(r.URL.RawQuery, "&"), "connect=v1")
}
