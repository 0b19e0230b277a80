package main

import (
	"bufio"
	"context"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// ginAPI limits with ginLimit. (A limit for all routes alike could also stand
// around the whole engine, which is an http.Handler.)
func ginAPI(users, slots algo.Limiter) *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(gin.Recovery(), ginLimit(httpmw.Limit(slots, keyfunc.Global())))
	quota := r.Group("", ginLimit(httpmw.Limit(users, userAndRoute)))
	quota.GET("/items/:id", func(c *gin.Context) {
		c.JSON(http.StatusOK, gin.H{"item": c.Param("id")})
	})
	return r
}

// ginLimit runs the rest of gin's chain within a middleware of net/http, which
// is made once and not for each request. An answer by the middleware itself
// aborts the chain: gin would otherwise call the next handler nevertheless.
func ginLimit(limit func(http.Handler) http.Handler) gin.HandlerFunc {
	type passage struct {
		*gin.Context
		passed bool
	}
	type passageKey struct{}
	limited := limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.Context().Value(passageKey{}).(*passage)
		p.passed, p.Request = true, r
		if w != http.ResponseWriter(p.Writer) {
			g := &ginWriter{p.Writer, w}
			p.Writer = g
			p.Next()
			g.commit()
			return
		}
		p.Next()
	}))
	return func(c *gin.Context) {
		p, outer := &passage{Context: c}, c.Request
		r := outer.WithContext(context.WithValue(outer.Context(), passageKey{}, p))
		r.Pattern = c.FullPath() // for keyfunc.Route
		// net/http removes the files of the form of the request that it made.
		defer func() { outer.MultipartForm = c.Request.MultipartForm }()
		limited.ServeHTTP(c.Writer, r)
		if !p.passed {
			c.Abort()
		}
	}
}

// ginWriter passes the calls of gin's writer through the middleware's, so that a
// limit in flight sees the status and a hijacked connection keeps its slot. It
// is needed only where the middleware wraps the writer.
type ginWriter struct {
	gin.ResponseWriter
	limit http.ResponseWriter
}

// commit passes the status to the middleware. gin keeps a status back until the
// body begins, and it may change until then.
func (w *ginWriter) commit() {
	if !w.Written() {
		w.limit.WriteHeader(w.Status())
	}
}

func (w *ginWriter) WriteHeaderNow() {
	w.commit()
	w.ResponseWriter.WriteHeaderNow()
}

func (w *ginWriter) Write(b []byte) (int, error) {
	w.commit()
	return w.limit.Write(b)
}

func (w *ginWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

func (w *ginWriter) Flush() {
	w.commit()
	w.ResponseWriter.Flush()
}

func (w *ginWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.limit).Hijack()
}

func (w *ginWriter) Unwrap() http.ResponseWriter { return w.limit }
