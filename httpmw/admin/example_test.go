package admin_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/admin"
	"github.com/sluice-go/sluice/keyfunc"
)

// The page on an address of its own, which only this machine reaches.
func Example() {
	token := "from the service's secrets"
	handler := http.NotFoundHandler()

	users := admin.Control(algo.Must(algo.NewTokenBucket(algo.PerSecond(10))))
	panel, err := admin.New(admin.WithPolicy("users", users), admin.WithAuthorize(admin.Bearer(token)))
	if err != nil {
		log.Fatal(err)
	}
	limit := httpmw.Limit(users, keyfunc.ClientIP(), httpmw.WithName("users"), httpmw.WithObserver(panel.Observe))
	go func() { _ = http.ListenAndServe("127.0.0.1:9090", panel) }()
	_ = http.ListenAndServe(":8080", limit(handler))
}

// An operator blocks a key, and switches the limit off.
func ExampleControl() {
	users := admin.Control(algo.Must(algo.NewTokenBucket(algo.PerMinute(100))))
	handler := httpmw.Limit(users, keyfunc.Header("X-User"))(http.NotFoundHandler())
	get := func(user string) int {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-User", user)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	key, _ := keyfunc.Header("X-User")(&http.Request{Header: http.Header{"X-User": {"mallory"}}})
	fmt.Println(users.Ban(context.Background(), key, time.Hour))
	fmt.Println(get("mallory"), get("alice"))
	fmt.Println(users.SwitchOff(context.Background(), time.Now().Add(time.Hour), "ticket 7"))
	fmt.Println(get("mallory"), get("alice"))
	// Output:
	// <nil>
	// 429 404
	// <nil>
	// 429 404
}
