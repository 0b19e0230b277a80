package httpmw_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
)

// slowWriter is a writer with the buffer of a server. The client takes a byte in rate.
type slowWriter struct {
	*sink
	*bufio.Writer
}

func newSlowWriter(rate time.Duration) slowWriter {
	socket := writerFunc(func(p []byte) (int, error) {
		time.Sleep(time.Duration(len(p)) * rate)
		return len(p), nil
	})
	return slowWriter{newSink(), bufio.NewWriterSize(socket, 2048)}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (w slowWriter) Write(p []byte) (int, error)               { return w.Writer.Write(p) }
func (w slowWriter) WriteString(s string) (int, error)         { return w.Writer.WriteString(s) }
func (w slowWriter) ReadFrom(r io.Reader) (n int64, err error) { return w.Writer.ReadFrom(r) }
func (w slowWriter) Flush()                                    {}

// slowReader takes 600 ms for its first byte.
type slowReader struct{ io.Reader }

func (r slowReader) Read(p []byte) (int, error) {
	time.Sleep(600 * time.Millisecond)
	return r.Reader.Read(p)
}

// TestC2_SlowReadersTeachNothing: a response that its client reads slowly takes as long as the
// client likes, however it is written; reading what is sent from elsewhere is work.
func TestC2_SlowReadersTeachNothing(t *testing.T) {
	large := strings.Repeat("x", 100_000)
	work := func() { time.Sleep(200 * time.Millisecond) }
	for name, row := range map[string]struct {
		write func(w http.ResponseWriter)
		rate  time.Duration
		want  algo.Outcome
	}{
		"in one write":          {func(w http.ResponseWriter) { work(); _, _ = w.Write([]byte(large)) }, 3 * time.Microsecond, algo.Succeeded | algo.Untimed},
		"a string":              {func(w http.ResponseWriter) { work(); _, _ = io.WriteString(w, large) }, 3 * time.Microsecond, algo.Succeeded | algo.Untimed},
		"a copy":                {func(w http.ResponseWriter) { work(); _, _ = io.Copy(w, strings.NewReader(large)) }, 3 * time.Microsecond, algo.Succeeded | algo.Untimed},
		"in small writes":       {func(w http.ResponseWriter) { work(); writeParts(w, large) }, 3 * time.Microsecond, algo.Succeeded | algo.Untimed},
		"shorter than the work": {func(w http.ResponseWriter) { work(); _, _ = w.Write([]byte(large)) }, time.Microsecond, algo.Succeeded},
		"too short to matter":   {func(w http.ResponseWriter) { _, _ = w.Write([]byte(large)) }, 900 * time.Nanosecond, algo.Succeeded},
		"from a slow source":    {func(w http.ResponseWriter) { _, _ = w.(io.ReaderFrom).ReadFrom(slowReader{strings.NewReader(large)}) }, 3 * time.Microsecond, algo.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newSlots(10)
				h := httpmw.Limit(l, key("k"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { row.write(w) }))
				h.ServeHTTP(newSlowWriter(row.rate), get())
				require.Equal(t, 1, l.released(row.want))
			})
		})
	}
}

func writeParts(w io.Writer, s string) {
	for len(s) > 0 {
		n := min(len(s), 700)
		_, _ = io.WriteString(w, s[:n])
		s = s[n:]
	}
}

// TestC2_ASlowReaderOnASocket: as above, by net/http.
func TestC2_ASlowReaderOnASocket(t *testing.T) {
	l := newSlots(10)
	body := make([]byte, 16<<20)
	url, _ := start(t, "HTTP/1.1", httpmw.Limit(l, key("k"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})))
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	require.NoError(t, err)
	time.Sleep(300 * time.Millisecond)
	_, err = io.CopyN(io.Discard, conn, int64(len(body)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return l.released(algo.Succeeded|algo.Untimed) == 1 }, 10*time.Second, time.Millisecond)
}

// TestOutcomeOfGRPCByContentType: the code counts for the types of gRPC, in any case, and for no
// other.
func TestOutcomeOfGRPCByContentType(t *testing.T) {
	for kind, want := range map[string]algo.Outcome{
		"application/grpc": algo.Failed, "application/grpc+proto": algo.Failed, "application/grpc;charset=x": algo.Failed,
		"APPLICATION/GRPC": algo.Failed, "Application/gRPC-Web+proto": algo.Failed, "application/grpc-web-text": algo.Failed,
		"application/grpcfoo": algo.Succeeded, "application/grpc-webs": algo.Succeeded, "text/application/grpc": algo.Succeeded,
	} {
		l := newSlots(10)
		serve(httpmw.Limit(l, key("k"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Grpc-Status", "13")
		})), get())
		require.Equal(t, 1, l.released(want), kind)
	}
}
