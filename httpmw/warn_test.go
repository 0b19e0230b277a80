package httpmw_test

import (
	"bytes"
	"errors"
	"log"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/stretchr/testify/require"
)

// logged collects the log lines of f, with all warnings still to come.
func logged(t *testing.T, f func()) string {
	var out bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&out)
	httpmw.ResetWarnings()
	f()
	return out.String()
}

func TestWarnings(t *testing.T) {
	const twice, rebuilt, undecided = "code=httpmw.policy_twice", "code=httpmw.built_per_request", "code=httpmw.undecided"
	l, k := bucket(t, algo.PerHour(1000)), keyfunc.Global()
	for _, row := range []struct {
		name string
		do   func()
		want string // "" for silence
	}{
		{"nested directly, no fields", func() {
			none := httpmw.WithHeaders(httpmw.None)
			httpmw.Limit(l, k, none)(httpmw.Limit(l, k, none)(ok))
		}, twice},
		{"nested with something between", func() {
			inner := httpmw.Limit(l, k)(ok)
			h := httpmw.Limit(l, k)(anonymous(inner))
			for range 10 {
				serve(h, get())
			}
		}, twice},
		{"two limits of two names", func() {
			serve(httpmw.Limit(l, k, httpmw.WithName("a"))(httpmw.Limit(bucket(t, algo.PerHour(1)), k, httpmw.WithName("b"))(ok)), get())
		}, ""},
		{"built per request", func() {
			for range 2 * httpmw.ManyBuilt {
				serve(httpmw.Limit(l, k)(ok), get())
			}
		}, rebuilt},
		{"many routes", func() {
			for range 2 * httpmw.ManyBuilt {
				h := httpmw.Limit(l, k)(ok)
				serve(h, get())
				serve(h, get())
			}
		}, ""},
		{"TimeoutHandler inside", func() {
			httpmw.Limit(newSlots(1), k)(http.TimeoutHandler(ok, time.Second, ""))
		}, "code=httpmw.timeout_inside"},
		{"TimeoutHandler around", func() {
			http.TimeoutHandler(httpmw.Limit(newSlots(1), k)(ok), time.Second, "")
		}, ""},
		{"TimeoutHandler inside a rate limit", func() {
			httpmw.Limit(l, k)(http.TimeoutHandler(ok, time.Second, ""))
		}, ""},
		{"failures", func() {
			for range 10 {
				ask(&scripted{err: errors.New("down")})
			}
		}, undecided},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := logged(t, row.do)
			if row.want == "" {
				require.Empty(t, out)
				return
			}
			require.Equal(t, 1, strings.Count(out, "\n"), out)
			require.Contains(t, out, row.want)
		})
	}
}
