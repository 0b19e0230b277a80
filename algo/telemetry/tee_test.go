package telemetry_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

func TestTee(t *testing.T) {
	var got []string
	note := func(name string) telemetry.Observer {
		return func(e telemetry.Event) { got = append(got, name+e.Policy) }
	}
	telemetry.Tee(note("a"), nil, note("b"))(telemetry.Event{Policy: "1"})
	telemetry.Tee(nil, note("c"))(telemetry.Event{Policy: "2"})
	telemetry.Tee()(telemetry.Event{})
	require.Equal(t, []string{"a1", "b1", "c2"}, got)
	boom := func(telemetry.Event) { panic("observer") }
	require.PanicsWithValue(t, "observer", func() { telemetry.Tee(note("d"), boom, note("e"))(telemetry.Event{}) })
	require.Equal(t, "d", got[3])
	require.Len(t, got, 4)
}

func ExampleTee() {
	count := 0
	counting := func(telemetry.Event) { count++ }
	printing := func(e telemetry.Event) { fmt.Println(e.Policy, e.Result) }
	users := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	handler := httpmw.Limit(users, keyfunc.ClientIP(), httpmw.WithName("users"),
		httpmw.WithObserver(telemetry.Tee(counting, printing)))(http.NotFoundHandler())

	for range 2 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	fmt.Println(count)
	// Output:
	// users allowed
	// users denied
	// 2
}
