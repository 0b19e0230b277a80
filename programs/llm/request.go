package main

import (
	"context"
	"errors"
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
	most     int64 // tokens of all answers
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
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, q)))
	})
}

// read understands as much of a request as the limits need. The upstream gets it as it
// is, with the most tokens that the plan allows, and is asked for the usage.
func (g *gateway) read(who user, body []byte) (*request, error) {
	o, err := parseObject(body)
	if err != nil {
		return nil, err
	}
	q := &request{user: who, prompt: int64(len(body))/4 + 1}
	if err := errors.Join(g.checkFields(o), o.value("model", &q.model), o.value("stream", &q.stream)); err != nil {
		return nil, err
	}
	if q.most, err = limitAnswers(o, g.Plans[who.Plan].MaxTokens); err != nil {
		return nil, err
	}
	if q.stream {
		if err := reportUsage(o); err != nil {
			return nil, err
		}
	}
	q.estimate = g.estimator.Estimate(q.model, q.Name, q.most, q.most)
	q.body = o.bytes()
	return q, nil
}
