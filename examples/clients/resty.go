package clients

import (
	"context"
	"net/http"

	"github.com/go-resty/resty/v2"
)

// Resty does not repeat by default.
func Resty(url string, paced *http.Client) Call {
	api := resty.NewWithClient(paced).SetRetryCount(0)
	return func(ctx context.Context) error {
		_, err := api.R().SetContext(ctx).Get(url)
		return err
	}
}
