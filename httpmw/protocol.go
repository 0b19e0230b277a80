package httpmw

import (
	"net/http"
	"slices"
	"strings"
)

// protocol is what a request speaks besides HTTP, as its Content-Type tells.
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

// protocolOf is asked about denied requests only.
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

// mostQuery is how much of a query is searched.
const mostQuery = 1 << 16

// isConnectUnary: calls have the version in a field, those by GET in the query.
// Others look like plain HTTP, and the answer to that is one they understand.
func isConnectUnary(r *http.Request) bool {
	if lines := r.Header["Connect-Protocol-Version"]; len(lines) == 1 && lines[0] == "1" {
		return true
	}
	if r.Method != http.MethodGet || r.URL == nil || len(r.URL.RawQuery) > mostQuery {
		return false
	}
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if pair == "connect=v1" {
			return true
		}
	}
	return false
}
