//go:build js && wasm

// Wasm is the playground of the web site: the limiters of this library in a browser, in
// virtual time. The page calls sluicePlay with settings as JSON and draws what it returns.
//
//	GOOS=js GOARCH=wasm go build -o playground.wasm ./wasm
package main

import (
	"encoding/json"
	"syscall/js"
	"testing"
	"testing/synctest"
)

// The bubble of testing/synctest wants a test, so the program is one, which does not end.
func main() {
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "playground", F: serve}}, nil, nil)
}

func serve(t *testing.T) {
	asked := make(chan func())
	js.Global().Set("sluicePlay", js.FuncOf(func(_ js.Value, args []js.Value) any {
		var answer string
		done := make(chan struct{})
		asked <- func() {
			defer close(done)
			answer = reply(t, args[0].String())
		}
		<-done
		return answer
	}))
	js.Global().Call("sluiceReady")
	for f := range asked {
		f()
	}
}

func reply(t *testing.T, text string) (answer string) {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return `{"error":"the settings are not valid JSON"}`
	}
	synctest.Test(t, func(*testing.T) {
		p, err := play(s)
		if err != nil {
			answer = `{"error":` + quote(err.Error()) + `}`
			return
		}
		data, _ := json.Marshal(p) // numbers and texts
		answer = string(data)
	})
	return answer
}

func quote(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}
