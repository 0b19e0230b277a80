package meter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
)

// TestW1_Reader: the bytes that two readers of one key have returned never exceed B + R*w, all
// of them arrive unchanged, and the limit is used.
func TestW1_Reader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, burst, size = 1000, 300, 5000
		l := algo.Must(algo.NewTokenBucket(algo.PerSecond(rate), algo.Burst(burst)))
		start, total := time.Now(), make(chan int)
		for i := range 2 {
			go func() {
				text := bytes.Repeat([]byte{byte(i)}, size)
				var got bytes.Buffer
				p := make([]byte, 777)
				for r := meter.NewReader(t.Context(), bytes.NewReader(text), l, "k"); ; {
					n, err := r.Read(p)
					got.Write(p[:n])
					total <- n
					if err == io.EOF {
						require.Equal(t, text, got.Bytes())
						total <- -1
						return
					}
					require.NoError(t, err)
				}
			}()
		}
		sum := 0
		for open := 2; open > 0; {
			n := <-total
			if n < 0 {
				open--
				continue
			}
			sum += n
			require.LessOrEqual(t, float64(sum), burst+rate*time.Since(start).Seconds()+1e-3)
		}
		require.Equal(t, 2*size, sum)
		require.InDelta(t, (2*size-burst)/float64(rate), time.Since(start).Seconds(), 0.01)
	})
}

// TestReaderEnds: the errors of the source, of the limiter and of the context end the reading,
// and bytes that came with an error of the source are charged and returned.
func TestReaderEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerHour(3)))
		boom := errors.New("boom")
		got, err := io.ReadAll(meter.NewReader(t.Context(), iotest.DataErrReader(io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(boom))), l, "k"))
		require.ErrorIs(t, err, boom)
		require.Equal(t, "ab", string(got))

		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		got, err = io.ReadAll(meter.NewReader(ctx, iotest.OneByteReader(strings.NewReader("cd")), l, "k"))
		require.ErrorIs(t, err, algo.ErrWait)
		require.Equal(t, "c", string(got))

		n, err := meter.NewReader(t.Context(), strings.NewReader("e"), l, "k").Read(nil)
		require.NoError(t, err)
		require.Zero(t, n)
		require.Panics(t, func() { meter.NewReader(t.Context(), nil, l, "k") })
		require.Panics(t, func() { meter.NewReader(t.Context(), strings.NewReader(""), nil, "k") })
	})
}

// The copy of a file takes as long as the limit of its user demands.
func ExampleNewReader() {
	perUser := algo.Must(algo.NewTokenBucket(algo.PerSecond(1<<20), algo.Burst(256<<10)))
	file := strings.NewReader("hello\n")

	_, err := io.Copy(os.Stdout, meter.NewReader(context.Background(), file, perUser, "alice"))
	fmt.Println(err)
	// Output:
	// hello
	// <nil>
}

// TestReaderServesRanges: beside the seeker of its source it is the content of a response.
func TestReaderServesRanges(t *testing.T) {
	file, l := strings.NewReader("0123456789"), algo.Must(algo.NewTokenBucket(algo.PerHour(4)))
	content := struct {
		io.Reader
		io.Seeker
	}{meter.NewReader(t.Context(), file, l, "k"), file}
	r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
	r.Header.Set("Range", "bytes=3-6")
	http.ServeContent(w, r, "a.txt", time.Time{}, content)
	require.Equal(t, http.StatusPartialContent, w.Code)
	require.Equal(t, "3456", w.Body.String())
	d, err := l.Peek(t.Context(), "k", 0)
	require.NoError(t, err)
	require.Zero(t, d.Remaining)
}
