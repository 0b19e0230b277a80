package httpmw_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// TestOneQuestionForEachRequest: the key functions and the limiters are asked once, whichever way a
// decision takes: without a verdict, to a denial, without a key, or after a failure. Of several
// policies the last one decides so; a room on the stack has four.
func TestOneQuestionForEachRequest(t *testing.T) {
	for name, row := range map[string]struct {
		keyErr error
		answer algo.Decision
		failed error
		status int
		asked  int // the limiter
	}{
		"admitted":             {answer: algo.Decision{Allowed: true, Limit: 9, Remaining: 8}, status: 200, asked: 1},
		"delayed":              {answer: algo.Decision{Allowed: true, Limit: 9, Delay: 1}, status: 200, asked: 1},
		"denied":               {answer: algo.Decision{Reason: algo.Quota, Limit: 9}, status: 429, asked: 1},
		"without a key":        {keyErr: keyfunc.ErrNoKey, answer: algo.Decision{Allowed: true, Limit: 9}, status: 200, asked: 1},
		"the limiter fails":    {failed: errors.New("down"), status: 503, asked: 1},
		"the key function too": {keyErr: errors.New("broken"), status: 503},
	} {
		for n := range 6 {
			for _, fields := range []httpmw.HeadersMode{httpmw.IETF, httpmw.None} {
				keys, others := 0, &scripted{decision: algo.Decision{Allowed: true, Limit: 9, Remaining: 8}}
				found := func(*http.Request) (string, error) {
					keys++
					return "k", nil
				}
				l := &scripted{decision: row.answer, err: row.failed}
				var ps []httpmw.Policy
				for i := range n {
					ps = append(ps, httpmw.Policy{Name: fmt.Sprint("other", i), Limiter: others, Key: found})
				}
				ps = append(ps, httpmw.Policy{Name: "last", Limiter: l, Key: func(*http.Request) (string, error) {
					keys++
					return "k", row.keyErr
				}})
				w := serve(httpmw.Limits(ps, httpmw.WithHeaders(fields))(ok), get())
				require.Equal(t, row.status, w.Code, name)
				require.Equal(t, n+1, keys, name)
				require.Len(t, l.keys, row.asked, name)
				require.Len(t, others.keys, n*row.asked, name)
				require.Len(t, others.outcomes, n*row.asked, name)
				require.Equal(t, fields == httpmw.IETF && row.failed == nil && row.asked > 0, w.Header().Get("RateLimit") != "", name)
			}
		}
	}
}
