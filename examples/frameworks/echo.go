package main

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// echoAPI limits with echoLimit. (A limit for all routes alike could also stand
// around the whole Echo, which is an http.Handler.)
func echoAPI(users, slots algo.Limiter) *echo.Echo {
	e := echo.New()
	e.Use(echoLimit(httpmw.Limit(slots, keyfunc.Global())))
	quota := e.Group("", echoLimit(httpmw.Limit(users, userAndRoute)))
	quota.GET("/items/:id", func(c *echo.Context) error {
		return c.JSON(http.StatusOK, map[string]string{"item": c.Param("id")})
	})
	return e
}

// echoLimit runs the rest of echo's chain within a middleware of net/http.
// echo.WrapMiddleware would do, but for two things: it makes the middleware
// anew for each request, and it lets an error pass by, so that a limit in
// flight takes a failed request for a success. Here the error is answered
// inside; it is returned as well, for middleware outside that logs it, and
// echo's error handler sees that the answer is on its way.
func echoLimit(limit func(http.Handler) http.Handler) echo.MiddlewareFunc {
	type passage struct {
		*echo.Context
		err error
	}
	type passageKey struct{}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		limited := limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p := r.Context().Value(passageKey{}).(*passage)
			p.SetRequest(r)
			p.SetResponse(w) // unwraps to echo's own, as echo wants it
			if p.err = next(p.Context); p.err != nil {
				p.Echo().HTTPErrorHandler(p.Context, p.err)
			}
		}))
		return func(c *echo.Context) error {
			p := &passage{Context: c}
			r := c.Request()
			defer func() { r.MultipartForm = c.Request().MultipartForm }() // net/http removes its files
			limited.ServeHTTP(c.Response(), r.WithContext(context.WithValue(r.Context(), passageKey{}, p)))
			return p.err
		}
	}
}
