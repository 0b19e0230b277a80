package main

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// chiAPI needs no adapter: chi's middleware is net/http middleware. A quota by
// route goes into With or into a Group, which run once the route is known;
// middleware added with Use runs before, when keyfunc.Route has no pattern yet.
func chiAPI(users, slots algo.Limiter) *chi.Mux {
	r := chi.NewRouter()
	r.Use(httpmw.Limit(slots, keyfunc.Global()))
	r.Group(func(r chi.Router) {
		r.Use(httpmw.Limit(users, userAndRoute))
		r.Get("/items/{id}", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "item %q\n", chi.URLParam(r, "id"))
		})
	})
	return r
}
