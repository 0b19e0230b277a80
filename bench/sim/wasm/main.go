//go:build js && wasm

package main

import (
	"encoding/json"
	"syscall/js"
)

func main() {
	js.Global().Set("sluiceOverload", js.FuncOf(func(_ js.Value, args []js.Value) any {
		var s settings
		var answer any
		err := json.Unmarshal([]byte(args[0].String()), &s)
		if err == nil {
			answer, err = play(s)
		}
		if err != nil {
			answer = map[string]string{"error": err.Error()}
		}
		data, _ := json.Marshal(answer) // numbers and texts
		return string(data)
	}))
	js.Global().Call("sluiceReady")
	select {}
}
