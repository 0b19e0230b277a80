package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sentOn is what the upstream gets of a body, and the tokens that are reserved for the answer.
func sentOn(t *testing.T, c *config, body string) (status int, got string, reserved int64) {
	t.Helper()
	var limits map[string]limits
	limits, err := c.open(nil)
	require.NoError(t, err)
	inside, leave := make(chan string, 1), make(chan struct{})
	model := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		inside <- string(b)
		<-leave
		io.WriteString(w, `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	})
	front := serveTest(t, c, limits, model)
	answered := make(chan int, 1)
	go func() {
		r, _ := http.NewRequest(http.MethodPost, front, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer key")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			answered <- 0
			return
		}
		answer.Body.Close()
		answered <- answer.StatusCode
	}()
	select {
	case got = <-inside:
		reserved = spent(t, limits["p"].tokens) - int64(len(body))/4 - 1
		close(leave)
		return <-answered, got, reserved
	case status = <-answered:
		close(leave)
		return status, "", 0
	}
}

// A plan of 200 tokens an answer: every field that raises or multiplies them counts, and
// the rest of the body stays as it is.
func TestTheCap(t *testing.T) {
	for body, want := range map[string]string{ // "" is refused
		`{"max_tokens":50}`:                `{"max_tokens":50}`,
		`{ "max_tokens" : 100000 }`:        `{ "max_tokens" : 200 }`,
		`{"model":"m"}`:                    `{"max_tokens":200,"model":"m"}`,
		`{}`:                               `{"max_tokens":200}`,
		`{"max_tokens":null}`:              `{"max_tokens":200}`,
		`{"max_completion_tokens":100000}`: `{"max_completion_tokens":200}`,
		`{"max_output_tokens":100000}`:     `{"max_output_tokens":200}`,
		`{"max_tokens":1,"max_completion_tokens":100000}`: `{"max_tokens":1,"max_completion_tokens":200}`,
		`{"n":50,"max_tokens":400}`:                       `{"n":50,"max_tokens":4}`,
		`{"n":50}`:                                        `{"max_tokens":4,"n":50}`,
		`{"best_of":20,"n":2,"max_tokens":9}`:             `{"best_of":20,"n":2,"max_tokens":9}`,
		`{"best_of":20,"max_completion_tokens":100}`:      `{"best_of":20,"max_completion_tokens":10}`,
		`{"n":201}`:                              "",
		`{"n":0}`:                                "",
		`{"n":-5}`:                               "",
		`{"n":1.5}`:                              "",
		`{"n":"3"}`:                              "",
		`{"max_tokens":-1}`:                      "",
		`{"max_tokens":1e9}`:                     "",
		`{"max_tokens":99999999999999999999}`:    "",
		`{"max_tokens":1,"max_tokens":100000}`:   "",
		`{"max_tokens":1,"Max_Tokens":100000}`:   "",
		`{"MAX_TOKENS":100000}`:                  "",
		`{"max\u005ftokens":100000}`:             `{"max\u005ftokens":200}`,
		`{"max_tokens":1} {"max_tokens":100000}`: "",
		`{"stream":true,"max_tokens":1}`:         `{"stream_options":{"include_usage":true},"stream":true,"max_tokens":1}`,
		`{"stream":true,"stream_options":{"include_usage":false,"x":1.0},"max_tokens":1}`:      `{"stream":true,"stream_options":{"include_usage":true,"x":1.0},"max_tokens":1}`,
		"{ \"seed\": 9007199254740993,\n \"t\": 1.10, \"u\":\"\\u00e9<\", \"max_tokens\": 7 }": "{ \"seed\": 9007199254740993,\n \"t\": 1.10, \"u\":\"\\u00e9<\", \"max_tokens\": 7 }",
	} {
		t.Run(body, func(t *testing.T) {
			c, err := load([]byte(file))
			require.NoError(t, err)
			status, got, reserved := sentOn(t, c, body)
			require.Equal(t, want, got)
			if want == "" {
				require.Equal(t, 400, status)
				return
			}
			require.Equal(t, 200, status)
			require.LessOrEqual(t, reserved, int64(200))
			require.True(t, json.Valid([]byte(got)))
		})
	}
}

// With a list of fields in the file, others are refused.
func TestUnknownFields(t *testing.T) {
	c, err := load([]byte(strings.Replace(file, `"prices"`, `"fields": ["model", "messages"], "prices"`, 1)))
	require.NoError(t, err)
	status, got, _ := sentOn(t, c, `{"model":"m","messages":[],"stream":false,"n":2}`)
	require.Equal(t, 200, status)
	require.Equal(t, `{"max_tokens":100,"model":"m","messages":[],"stream":false,"n":2}`, got)
	status, got, _ = sentOn(t, c, `{"model":"m","num_answers":50}`)
	require.Equal(t, 400, status)
	require.Empty(t, got)
}
