package clients

import (
	"context"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// Anthropic repeats twice by default.
func Anthropic(url string, paced *http.Client) Call {
	api := anthropic.NewClient(
		option.WithHTTPClient(paced), option.WithMaxRetries(0),
		option.WithBaseURL(url), option.WithAPIKey("key"))
	return func(ctx context.Context) error {
		_, err := api.Models.List(ctx, anthropic.ModelListParams{})
		return err
	}
}
