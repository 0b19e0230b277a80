package metered

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

func fields(kind, encoding string) http.Header {
	h := http.Header{}
	if kind != "" {
		h.Set("Content-Type", kind)
	}
	if encoding != "" {
		h.Set("Content-Encoding", encoding)
	}
	return h
}

// cut divides the written parts into chunks, as a metered writer does.
func cut(c *chunks, parts ...string) (found []string) {
	for _, p := range parts {
		for from := 0; from < len(p); {
			chunk, end := c.next([]byte(p), from)
			if chunk == nil {
				break
			}
			found = append(found, string(chunk))
			from = end
		}
	}
	return found
}

func TestChunks(t *testing.T) {
	for _, row := range []struct {
		kind, encoding string
		parts          []string
		want           []string
		rest           string
	}{
		{"text/event-stream", "", []string{"data: a\n\ndata: b\n\n"}, []string{"data: a\n\n", "data: b\n\n"}, ""},
		{"Text/Event-Stream; charset=utf-8", "", []string{"data: a\r\n", "\r\ndata: b\n", "\r\nda"}, []string{"data: a\r\n\r\n", "data: b\n\r\n"}, "da"},
		{"text/event-stream", "", []string{"event: x\ndata: a", "\n", "\n"}, []string{"event: x\ndata: a\n\n"}, ""},
		{"text/event-stream", "", []string{"data: a\r\n\r", "\n"}, []string{"data: a\r\n\r\n"}, ""},
		{"text/event-stream", "gzip", []string{"data: a\n\ndata", ": b"}, []string{"data: a\n\ndata", ": b"}, ""},
		{"application/x-ndjson", "", []string{"{}\n{", "}\n[]"}, []string{"{}\n", "{}\n"}, "[]"},
		{"application/jsonl", "", []string{"\n\n"}, []string{"\n", "\n"}, ""},
		{"application/json", "", []string{"{}\n{", "}\n"}, []string{"{}\n{", "}\n"}, ""},
		{"", "", []string{"a", "", "b"}, []string{"a", "b"}, ""},
	} {
		c := &chunks{end: framing(fields(row.kind, row.encoding))}
		require.Equal(t, row.want, cut(c, row.parts...), "%q", row.parts)
		require.Equal(t, row.rest, string(c.partial), "%q", row.parts)
	}
}

// TestM1_ChunksAreBounded: an event without an end is several chunks, and nothing of
// it is lost.
func TestM1_ChunksAreBounded(t *testing.T) {
	for _, end := range []func([]byte, int) int{eventEnd, lineEnd} {
		c := &chunks{end: end}
		whole := strings.Repeat("x", 3*maxChunk+5)
		found := cut(c, whole[:10], whole[10:maxChunk], whole[maxChunk:])
		require.Len(t, found, 3)
		require.Equal(t, whole, strings.Join(found, "")+string(c.partial))
		require.LessOrEqual(t, cap(c.partial), 2*maxChunk)
	}
}

// TestChunksInAnyParts: however a response is cut into writes, its chunks are the
// same.
func TestChunksInAnyParts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(94, 95))
	for range cases.Count(3_000, 300_000) {
		end := []func([]byte, int) int{eventEnd, lineEnd}[rnd.IntN(2)]
		var b bytes.Buffer
		for range rnd.IntN(30) {
			b.WriteString([]string{"\n", "\r\n", "\r", "x", "\n\n"}[rnd.IntN(5)])
		}
		whole := b.String()
		at := &chunks{end: end}
		want := cut(at, whole)
		var parts []string
		for rest := whole; rest != ""; {
			n := 1 + rnd.IntN(len(rest))
			parts, rest = append(parts, rest[:n]), rest[n:]
		}
		in := &chunks{end: end}
		require.Equal(t, want, cut(in, parts...), "%q", parts)
		require.Equal(t, string(at.partial), string(in.partial), "%q", parts)
	}
}
