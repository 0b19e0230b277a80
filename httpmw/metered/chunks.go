package metered

import (
	"bytes"
	"net/http"
	"strings"
)

// maxChunk is how much of an unfinished event or line is kept.
const maxChunk = 64 << 10

// chunks finds events or lines in a response that is written in parts.
type chunks struct {
	// end returns the length of the chunk at the begin of b, 0 if b does not have its
	// end; the end is not within the first from bytes. nil: each write is a chunk.
	end     func(b []byte, from int) int
	partial []byte // an unfinished chunk
}

// next returns the chunk that p[from:] completes, valid until the next call, and its
// end in p; nil if that is unfinished.
func (c *chunks) next(p []byte, from int) (chunk []byte, end int) {
	rest := p[from:]
	if c.end == nil {
		return rest, len(p)
	}
	had := len(c.partial)
	if had == 0 {
		if n := c.end(rest, 0); n > 0 {
			return rest[:n], from + n
		}
	}
	c.partial = append(c.partial, rest[:min(len(rest), maxChunk-had)]...)
	n := c.end(c.partial, had)
	if n == 0 && len(c.partial) == maxChunk {
		n = maxChunk
	}
	if n == 0 {
		return nil, len(p)
	}
	chunk, c.partial = c.partial[:n], c.partial[:0]
	return chunk, from + n - had
}

// framing returns how a response with these fields is divided.
func framing(h http.Header) func(b []byte, from int) int {
	if len(h["Content-Encoding"]) > 0 {
		return nil
	}
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "text/event-stream":
		return eventEnd
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines",
		"application/stream+json", "application/x-json-stream":
		return lineEnd
	}
	return nil
}

// eventEnd finds the blank line after an event (HTML, server-sent events), with LF or
// CRLF at the ends of lines. Events with CR alone are one chunk.
func eventEnd(b []byte, from int) int {
	for i := max(from-2, 0); ; {
		n := bytes.IndexByte(b[i:], '\n') + 1
		if n == 0 {
			return 0
		}
		i += n
		switch next := b[i:]; {
		case len(next) > 0 && next[0] == '\n':
			return i + 1
		case len(next) > 1 && next[0] == '\r' && next[1] == '\n':
			return i + 2
		}
	}
}

// lineEnd finds the end of a line.
func lineEnd(b []byte, from int) int {
	n := bytes.IndexByte(b[from:], '\n') + 1
	if n == 0 {
		return 0
	}
	return from + n
}
