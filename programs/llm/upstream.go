package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"time"
)

// upstream is a language model that says nothing: it streams words in the shape of
// chat completions, a lognormal number of them.
type upstream struct{ perToken time.Duration }

func (u upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Model     string `json:"model"`
		Stream    bool   `json:"stream"`
		MaxTokens int64  `json:"max_tokens"`
		Messages  []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	w.Header().Set("X-Ratelimit-Remaining-Requests", "999")
	w.Header().Set("X-Ratelimit-Reset-Requests", "60ms")
	tokens := min(1+int64(float64(q.MaxTokens)/5*math.Exp(rand.NormFloat64()-.5)), q.MaxTokens)
	size := 0
	for _, m := range q.Messages {
		size += len(m.Content)
	}
	used := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, size/4, tokens, int64(size/4)+tokens)
	if !q.Stream {
		time.Sleep(time.Duration(tokens) * u.perToken)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"object":"chat.completion","model":%q,"choices":[{"index":0,"message":{"role":"assistant","content":"word"}}],%s}`, q.Model, used)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	events := http.NewResponseController(w)
	for range tokens {
		fmt.Fprintf(w, "data: {\"object\":\"chat.completion.chunk\",\"model\":%q,\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"}}]}\n\n", q.Model)
		if events.Flush() != nil || r.Context().Err() != nil {
			return
		}
		time.Sleep(u.perToken)
	}
	fmt.Fprintf(w, "data: {\"object\":\"chat.completion.chunk\",\"model\":%q,\"choices\":[],%s}\n\ndata: [DONE]\n\n", q.Model, used)
}
