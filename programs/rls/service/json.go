package service

import (
	"io"
	"net/http"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

// mostJSON is the longest request in bytes.
const mostJSON = 1 << 20

// ServeJSON answers a RateLimitRequest in JSON with a RateLimitResponse: 200, or 429
// over the limit, 400 for a request that makes no sense, 500 if it cannot be decided.
func (s *Service) ServeJSON(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostJSON))
	req := new(rls.RateLimitRequest)
	if err == nil {
		err = protojson.Unmarshal(body, req)
	}
	if err != nil {
		http.Error(w, "the body is not a RateLimitRequest in JSON", http.StatusBadRequest)
		return
	}
	resp, err := s.ShouldRateLimit(r.Context(), req)
	switch {
	case status.Code(err) == codes.InvalidArgument:
		http.Error(w, status.Convert(err).Message(), http.StatusBadRequest)
		return
	case err != nil:
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	text, err := protojson.Marshal(resp)
	if err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if resp.GetOverallCode() == rls.RateLimitResponse_OVER_LIMIT {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(text) // best effort: the client may be gone
}
