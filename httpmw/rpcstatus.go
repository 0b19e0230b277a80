package httpmw

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
	"github.com/sluice-go/sluice/internal/admission"
)

// protocol is the protocol of a request on top of HTTP, by its Content-Type.
type protocol struct {
	kind        protocolKind
	contentType string // of the answer
}

type protocolKind uint8

const (
	plainHTTP     protocolKind = iota
	grpc                       // gRPC and gRPC-Web: a status in header fields
	connectUnary               // an HTTP status and JSON
	connectStream              // an end-of-stream envelope
)

// The content types that are answered with themselves; the codec has to be
// the one of the request for some clients. No other text of the request is
// sent back.
var (
	grpcTypes = []string{
		"application/grpc", "application/grpc+proto", "application/grpc+json",
		"application/grpc-web", "application/grpc-web+proto", "application/grpc-web+json",
		"application/grpc-web-text", "application/grpc-web-text+proto",
	}
	connectTypes = []string{"application/connect+proto", "application/connect+json"}
)

// protocolOf is called for denied requests only.
func protocolOf(r *http.Request) protocol {
	sent := ""
	if lines := r.Header["Content-Type"]; len(lines) > 0 {
		sent, _, _ = strings.Cut(lines[0], ";")
		sent = strings.TrimSpace(sent)
	}
	switch {
	case strings.HasPrefix(sent, "application/grpc"):
		return protocol{grpc, grpcType(sent)}
	case strings.HasPrefix(sent, "application/connect+"):
		return protocol{connectStream, oneOf(connectTypes, sent, connectTypes[0])}
	case isConnectUnary(r):
		return protocol{connectUnary, "application/json"}
	}
	return protocol{}
}

// grpcType keeps gRPC and gRPC-Web apart where the codec is not known.
func grpcType(sent string) string {
	if strings.HasPrefix(sent, "application/grpc-web-text") {
		return oneOf(grpcTypes, sent, "application/grpc-web-text")
	}
	if strings.HasPrefix(sent, "application/grpc-web") {
		return oneOf(grpcTypes, sent, "application/grpc-web")
	}
	return oneOf(grpcTypes, sent, "application/grpc")
}

func oneOf(known []string, s, otherwise string) string {
	if i := slices.Index(known, s); i >= 0 {
		return known[i]
	}
	return otherwise
}

// maxQuery is the longest query that is searched.
const maxQuery = 1 << 16

// isConnectUnary: calls have the version in a field, calls by GET in the query.
// Calls without a version look like plain HTTP, whose answers Connect clients
// understand too.
func isConnectUnary(r *http.Request) bool {
	if lines := r.Header["Connect-Protocol-Version"]; len(lines) == 1 && lines[0] == "1" {
		return true
	}
	if r.Method != http.MethodGet || r.URL == nil || len(r.URL.RawQuery) > maxQuery {
		return false
	}
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if pair == "connect=v1" {
			return true
		}
	}
	return false
}

// refuseRPC answers a call in its own protocol, with RESOURCE_EXHAUSTED for 429,
// UNAVAILABLE for 503, and UNAUTHENTICATED for 401.
func (f *refusal) refuseRPC(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.protocol.contentType)
	status, body := http.StatusOK, ""
	switch f.protocol.kind {
	case grpc:
		// An answer without a body, whose header fields are the trailers too
		// ("Trailers-Only"): metadata sent before would keep the client from
		// retrying.
		code, _ := codeOf(f.Status)
		h.Set("Grpc-Status", code)
		h.Set("Grpc-Message", f.Title)
		h.Set("Grpc-Status-Details-Bin", f.statusDetails(code))
		h.Set("Grpc-Retry-Pushback-Ms", strconv.FormatInt(int64(f.pushback), 10))
	case connectUnary:
		status, body = f.Status, f.connectError()
	case connectStream:
		body = endOfStream(`{"error":` + f.connectError() + `}`)
	}
	w.WriteHeader(status)
	if body != "" && r.Method != http.MethodHead {
		_, _ = io.WriteString(w, body) // best effort: the client may be gone
	}
}

// codeOf is the code of gRPC for a status, as a number and as Connect writes it.
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

// connectError is a Connect error in JSON.
func (f *refusal) connectError() string {
	_, code := codeOf(f.Status)
	return `{"code":"` + code + `","message":"` + f.Title + `"}`
}

// endOfStream wraps the last message of a Connect stream: flags, length,
// message.
func endOfStream(message string) string {
	const lastMessage = 0b10
	b := binary.BigEndian.AppendUint32([]byte{lastMessage}, uint32(len(message)))
	return string(append(b, message...))
}

// pushbackFor is the value of grpc-retry-pushback-ms.
func (f *refusal) pushbackFor(r *http.Request) int32 {
	if f.wait == algo.Forever {
		return admission.DoNotRetry
	}
	left := admission.TimeLeft(r.Context())
	if timeout, ok := grpcTimeout(r.Header.Get("Grpc-Timeout")); ok {
		left = min(left, timeout)
	}
	return admission.Pushback(f.wait, 0, left, 0)
}

// grpcTimeout parses the field: at most eight digits and a unit.
func grpcTimeout(s string) (time.Duration, bool) {
	if len(s) < 2 || len(s) > 9 {
		return 0, false
	}
	unit, ok := map[byte]time.Duration{
		'H': time.Hour, 'M': time.Minute, 'S': time.Second,
		'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
	}[s[len(s)-1]]
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	if !ok || err != nil {
		return 0, false
	}
	if n > uint64(math.MaxInt64)/uint64(unit) {
		return math.MaxInt64, true
	}
	return time.Duration(n) * unit, true
}
