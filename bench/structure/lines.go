package main

import (
	"fmt"
	"path/filepath"
	"slices"
)

var lineRows = []row{
	{"product lines", "lines of the Go files, without tests, of algo, keyfunc, httpmw, grpcmw, adaptive, distributed and their subpackages rpckey and rules", func(t *tree) (string, error) {
		n := 0
		for _, name := range libraries {
			n += lines(goOnly(t.files(name)))
		}
		return fmt.Sprint(n), nil
	}},
	{"product lines with internal packages", "the same and the internal packages that they import", func(t *tree) (string, error) {
		n := 0
		for _, name := range t.product {
			n += lines(goOnly(t.files(name)))
		}
		t.note("product", slices.Clone(t.product))
		return fmt.Sprint(n), nil
	}},
}

func goOnly(files []string) []string {
	return slices.DeleteFunc(files, func(f string) bool { return filepath.Ext(f) != ".go" })
}
