//go:build js && wasm

package main

import (
	"encoding/json"
	"syscall/js"
)

func main() {
	js.Global().Set("sluiceOverload", js.FuncOf(func(_ js.Value, args []js.Value) any {
		var s settings
		err := json.Unmarshal([]byte(args[0].String()), &s)
		var p page
		if err == nil {
			p, err = play(s)
		}
		if err != nil {
			data, _ := json.Marshal(map[string]string{"error": err.Error()})
			return string(data)
		}
		data, _ := json.Marshal(p) // numbers and texts
		return string(data)
	}))
	js.Global().Call("sluiceReady")
	select {}
}
