package httpmw_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// TestOneQuestionForEachRequest: the key function and the limiter are asked once, whichever way a
// decision takes: without a verdict, to a denial, without a key, or after a failure.
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
		keys := 0
		key := func(*http.Request) (string, error) {
			keys++
			return "k", row.keyErr
		}
		l := &scripted{decision: row.answer, err: row.failed}
		w := serve(httpmw.Limit(l, key)(ok), get())
		require.Equal(t, row.status, w.Code, name)
		require.Equal(t, 1, keys, name)
		require.Len(t, l.keys, row.asked, name)
	}
}
