package inflight

import (
	"net/http"
	"strings"
)

// contentType is the content type of a response, "" if it has none yet. The key
// is in canonical form, which saves http.Header.Get making it.
func contentType(h http.Header) string {
	if lines := h["Content-Type"]; len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// streamType reports whether responses of a content type are streams.
func streamType(contentType string) bool {
	if contentType == "" {
		return false
	}
	kind := mediaType(contentType)
	switch kind {
	case eventStream, "multipart/x-mixed-replace", "application/vnd.amazon.eventstream", "application/json-seq":
		return true
	}
	if jsonLines(kind) {
		return true
	}
	return strings.HasSuffix(kind, "+json-seq") || strings.HasPrefix(kind, "application/connect+") ||
		strings.HasPrefix(kind, "audio/") || strings.HasPrefix(kind, "video/")
}

const eventStream = "text/event-stream"

// mediaType is a content type without its parameters, in lower case.
func mediaType(contentType string) string {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// isGRPC reports whether a content type is one of gRPC or gRPC-Web, with any codec.
func isGRPC(contentType string) bool {
	const family = "application/grpc"
	if len(contentType) < len(family) || !strings.EqualFold(contentType[:len(family)], family) { // of most answers
		return false
	}
	kind, _, _ := strings.Cut(mediaType(contentType)[len(family):], "+")
	return kind == "" || kind == "-web" || kind == "-web-text"
}

// jsonLines reports whether a media type is of JSON values in lines.
func jsonLines(kind string) bool {
	switch kind {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines",
		"application/stream+json", "application/x-json-stream":
		return true
	}
	return false
}
