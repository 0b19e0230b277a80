package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
)

func TestMain(m *testing.M) {
	gin.DefaultErrorWriter = io.Discard // stack traces of the panics
	goleak.VerifyTestMain(m)
}

// gate is a limit in flight that notes the outcomes.
type gate struct {
	inFlight atomic.Int64
	outcomes chan algo.Outcome
}

func newGate() *gate { return &gate{outcomes: make(chan algo.Outcome, 16)} }

func (g *gate) Acquire(context.Context, string, int64) (algo.Lease, error) {
	g.inFlight.Add(1)
	return algo.NewLease(algo.Decision{Allowed: true, Limit: 8, Remaining: 7}, g, algo.Handle{N: 1}), nil
}

func (g *gate) Release(_ algo.Handle, o algo.Outcome) {
	g.inFlight.Add(-1)
	g.outcomes <- o
}

func (g *gate) Settle(algo.Handle, int64) {}

// routes are the handlers that the tests add to each API, as its framework
// writes them: one that counts its calls, one that panics, one that fails, one
// that changes its mind about the status, one that hijacks and one that flushes.
type routes struct{ served atomic.Int64 }

var errTest = errors.New("it failed")

var frameworks = map[string]func(users, slots algo.Limiter, t *routes) http.Handler{
	"chi": func(users, slots algo.Limiter, t *routes) http.Handler {
		r := chiAPI(users, slots)
		r.Route("/api", func(r chi.Router) {
			r.With(httpmw.Limit(users, userAndRoute)).Get("/count/{id}", t.count)
		})
		r.Get("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		r.Get("/fail", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
		r.Get("/hijack", hijack)
		r.Get("/flush", flush)
		r.Post("/upload", upload)
		return r
	},
	"gin": func(users, slots algo.Limiter, t *routes) http.Handler {
		r := ginAPI(users, slots)
		r.Group("/api", ginLimit(httpmw.Limit(users, userAndRoute))).GET("/count/:id", func(c *gin.Context) { t.count(c.Writer, c.Request) })
		r.GET("/panic", func(*gin.Context) { panic(http.ErrAbortHandler) })
		r.GET("/fail", func(c *gin.Context) { c.Status(http.StatusBadGateway) })
		r.GET("/change", func(c *gin.Context) {
			c.Status(http.StatusOK)
			c.String(http.StatusBadGateway, "changed")
		})
		r.GET("/hijack", func(c *gin.Context) { hijack(c.Writer, c.Request) })
		r.GET("/flush", func(c *gin.Context) { flush(c.Writer, c.Request) })
		r.POST("/upload", func(c *gin.Context) { upload(c.Writer, c.Request) })
		return r
	},
	"echo": func(users, slots algo.Limiter, t *routes) http.Handler {
		e := echoAPI(users, slots)
		e.Group("/api", echoLimit(httpmw.Limit(users, userAndRoute))).GET("/count/:id", func(c *echo.Context) error {
			t.count(c.Response(), c.Request())
			return nil
		})
		e.GET("/panic", func(*echo.Context) error { panic(http.ErrAbortHandler) })
		e.GET("/fail", func(*echo.Context) error { return echo.NewHTTPError(http.StatusBadGateway, "failed").Wrap(errTest) })
		e.GET("/hijack", func(c *echo.Context) error { hijack(c.Response(), c.Request()); return nil })
		e.GET("/flush", func(c *echo.Context) error { flush(c.Response(), c.Request()); return nil })
		e.POST("/upload", func(c *echo.Context) error { upload(c.Response(), c.Request()); return nil })
		return e
	},
}

func (t *routes) count(w http.ResponseWriter, _ *http.Request) {
	t.served.Add(1)
	io.WriteString(w, "counted")
}

func hijack(w http.ResponseWriter, _ *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	go func() {
		defer conn.Close()
		// Without Upgrade the client closes the connection at once.
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n")
		rw.Flush()
		rw.ReadByte() // until the client goes
	}()
}

func flush(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, "data: first\n\n")
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// upload keeps the files of a form on the disk.
func upload(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseMultipartForm(1); err != nil {
		panic(err)
	}
	files, err := os.ReadDir(os.TempDir())
	if err != nil || len(files) != 1 {
		panic("the form has no file")
	}
	w.WriteHeader(http.StatusNoContent)
}

// TestUploadedFilesAreRemoved: net/http removes the files of the request that it made, not
// a copy's. (chi itself hands on a copy, with a limit or without.)
func TestUploadedFilesAreRemoved(t *testing.T) {
	each(t, func(t *testing.T, url string, _ *gate, _ *routes) {
		if strings.HasSuffix(t.Name(), "/chi") {
			return
		}
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		part, err := form.CreateFormFile("file", "name")
		require.NoError(t, err)
		_, err = part.Write(make([]byte, 11<<20))
		require.NoError(t, err)
		require.NoError(t, form.Close())
		response, err := http.Post(url+"/upload", form.FormDataContentType(), &body)
		require.NoError(t, err)
		response.Body.Close()
		require.Equal(t, http.StatusNoContent, response.StatusCode)
		require.Eventually(t, func() bool {
			files, err := os.ReadDir(dir)
			return err == nil && len(files) == 0
		}, 10*time.Second, 10*time.Millisecond)
	})
}

// each runs test with every framework behind a real server.
func each(t *testing.T, test func(t *testing.T, url string, slots *gate, r *routes)) {
	for name, build := range frameworks {
		t.Run(name, func(t *testing.T) {
			users, err := algo.NewTokenBucket(algo.Per(1, time.Hour), algo.Burst(2))
			require.NoError(t, err)
			slots, r := newGate(), new(routes)
			s := httptest.NewUnstartedServer(build(users, slots, r))
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.Start()
			defer func() {
				http.DefaultClient.CloseIdleConnections()
				s.Close() // waits for the handlers
				require.Zero(t, slots.inFlight.Load())
			}()
			test(t, s.URL, slots, r)
		})
	}
}

func get(t *testing.T, url, user string) (*http.Response, string) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	r.Header.Set("X-User", user)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}

func TestAdmittedAndDenied(t *testing.T) {
	each(t, func(t *testing.T, url string, slots *gate, r *routes) {
		for range 2 {
			response, body := get(t, url+"/api/count/1", "dave")
			require.Equal(t, http.StatusOK, response.StatusCode)
			require.Equal(t, "counted", body)
			fields := strings.Join(response.Header["Ratelimit"], ", ")
			require.Contains(t, fields, `"default";r=7`, "the limit in flight")
			require.Contains(t, fields, `"1-per-hour-burst-2";r=`, "the quota")
		}
		// Another path of the same route is the same key.
		response, body := get(t, url+"/api/count/2", "dave")
		require.Equal(t, http.StatusTooManyRequests, response.StatusCode)
		require.NotEmpty(t, response.Header.Get("Retry-After"))
		require.Equal(t, "application/problem+json", response.Header.Get("Content-Type"))
		require.Contains(t, body, "quota-exceeded")
		require.NotContains(t, body, "counted")
		require.EqualValues(t, 2, r.served.Load(), "the handler ran for a denied request")

		// Another user and another route are not.
		response, _ = get(t, url+"/api/count/1", "erin")
		require.Equal(t, http.StatusOK, response.StatusCode)
		response, body = get(t, url+"/items/7", "dave")
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Contains(t, body, "7")
		outcomes := map[algo.Outcome]int{}
		for range 5 {
			outcomes[<-slots.outcomes]++
		}
		require.Equal(t, map[algo.Outcome]int{algo.Succeeded: 4, algo.Canceled: 1}, outcomes)
	})
}

// TestUnmatched: a path that no route matches answers 404 under the limit in
// flight.
func TestUnmatched(t *testing.T) {
	each(t, func(t *testing.T, url string, slots *gate, _ *routes) {
		response, _ := get(t, url+"/nothing", "dave")
		require.Equal(t, http.StatusNotFound, response.StatusCode)
		require.Equal(t, algo.Failed|algo.Untimed, <-slots.outcomes)
	})
}

func TestPanicFreesTheSlot(t *testing.T) {
	each(t, func(t *testing.T, url string, slots *gate, _ *routes) {
		for range 3 {
			response, err := http.Get(url + "/panic")
			if err == nil { // gin's Recovery may answer
				response.Body.Close()
			}
			require.Equal(t, algo.Failed, <-slots.outcomes)
		}
	})
}

// TestOutcome: what the handler says in its framework's way is what the limit
// in flight learns.
func TestOutcome(t *testing.T) {
	each(t, func(t *testing.T, url string, slots *gate, _ *routes) {
		response, _ := get(t, url+"/fail", "dave")
		require.Equal(t, http.StatusBadGateway, response.StatusCode)
		require.Equal(t, algo.Failed, <-slots.outcomes)
		if strings.HasSuffix(t.Name(), "gin") {
			response, _ = get(t, url+"/change", "dave")
			require.Equal(t, http.StatusBadGateway, response.StatusCode)
			require.Equal(t, algo.Failed, <-slots.outcomes)
		}
	})
}

// TestHijack: a hijacked connection keeps its slot until it is closed.
func TestHijack(t *testing.T) {
	each(t, func(t *testing.T, url string, slots *gate, _ *routes) {
		response, err := http.Get(url + "/hijack")
		require.NoError(t, err)
		require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
		require.EqualValues(t, 1, slots.inFlight.Load())
		require.Empty(t, slots.outcomes)
		require.NoError(t, response.Body.Close())
		require.Equal(t, algo.Succeeded|algo.Untimed, <-slots.outcomes)
	})
}

// TestFlush: server-sent events arrive at once, and teach nothing.
func TestFlush(t *testing.T) {
	each(t, func(t *testing.T, url string, slots *gate, _ *routes) {
		response, err := http.Get(url + "/flush")
		require.NoError(t, err)
		line, err := bufio.NewReader(response.Body).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "data: first\n", line)
		require.EqualValues(t, 1, slots.inFlight.Load())
		require.NoError(t, response.Body.Close())
		require.Equal(t, algo.Succeeded|algo.Untimed, <-slots.outcomes)
	})
}

func TestUnknownFramework(t *testing.T) {
	require.ErrorContains(t, serve("cobol", "127.0.0.1:0"), `"cobol"`)
	require.Error(t, serve("chi", "nonsense"))
}
