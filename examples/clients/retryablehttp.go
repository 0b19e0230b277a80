package clients

import (
	"context"
	"net/http"

	"github.com/hashicorp/go-retryablehttp"
)

// RetryableHTTP repeats four times by default.
func RetryableHTTP(url string, paced *http.Client) Call {
	api := retryablehttp.NewClient()
	api.HTTPClient, api.RetryMax = paced, 0
	api.ErrorHandler = retryablehttp.PassthroughErrorHandler // the answer, not "giving up"
	api.Logger = nil
	return func(ctx context.Context) error {
		r, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := api.Do(r)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
}
