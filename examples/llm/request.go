package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// request is a chat completion and its user.
type request struct {
	user
	model    string
	stream   bool
	prompt   int64 // tokens of the input, four bytes each
	most     int64 // tokens of the answer
	estimate int64 // of the answer
	body     []byte
}

const (
	mostBody   = 1 << 20
	mostAnswer = 4 << 20
)

type requestKey struct{}

func requestOf(ctx context.Context) *request {
	q, ok := ctx.Value(requestKey{}).(*request)
	if !ok {
		return new(request)
	}
	return q
}

// identify finds the user and the model of a request, before the limits. Unknown
// users and invalid requests get an error.
func (g *gateway) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := g.Users[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		if !ok {
			http.Error(w, "unknown API key", http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
		if err != nil {
			http.Error(w, "the request is too large", http.StatusRequestEntityTooLarge)
			return
		}
		q, err := g.read(who, body)
		if err != nil {
			http.Error(w, "the request is not JSON as chat completions have it", http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, q)))
	})
}

// read understands as much of a request as the limits need. The upstream gets the
// rest as it is, with the most tokens that the plan allows, and is asked for the usage.
func (g *gateway) read(who user, body []byte) (*request, error) {
	var known struct {
		Model     string `json:"model"`
		Stream    bool   `json:"stream"`
		MaxTokens int64  `json:"max_tokens"`
	}
	fields := map[string]any{}
	if err := json.Unmarshal(body, &known); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	q := &request{user: who, model: known.Model, stream: known.Stream, prompt: int64(len(body))/4 + 1, most: g.Plans[who.Plan].MaxTokens}
	if known.MaxTokens > 0 {
		q.most = min(q.most, known.MaxTokens)
	}
	q.estimate = g.estimator.Estimate(q.model, q.Name, q.most, q.most)
	fields["max_tokens"] = q.most
	if q.stream {
		fields["stream_options"] = map[string]bool{"include_usage": true}
	}
	var err error
	q.body, err = json.Marshal(fields)
	return q, err
}
