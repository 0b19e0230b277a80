package clients

import (
	"context"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// OpenAI repeats twice by default.
func OpenAI(url string, paced *http.Client) Call {
	api := openai.NewClient(
		option.WithHTTPClient(paced), option.WithMaxRetries(0),
		option.WithBaseURL(url), option.WithAPIKey("key"))
	return func(ctx context.Context) error {
		_, err := api.Models.List(ctx)
		return err
	}
}
