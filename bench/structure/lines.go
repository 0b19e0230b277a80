package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	{"lines of Lua", "of the scripts", func(t *tree) (string, error) {
		files, err := filepath.Glob(filepath.Join(t.root, "distributed/*.lua"))
		return fmt.Sprint(lines(files)), err
	}},
	{"tooling and demos inside the main module", "lines of the Go files, without tests, of all other packages of the main module, but algo/algotest and algo/telemetry", func(t *tree) (string, error) {
		n := 0
		var names []string
		for name := range t.pkgs {
			if !slices.Contains(t.product, name) && !slices.Contains([]string{"", "algo/algotest", "algo/telemetry"}, name) {
				n += lines(goOnly(t.files(name)))
				names = append(names, name)
			}
		}
		t.note("tooling", names)
		return fmt.Sprint(n), nil
	}},
	{"GCRA implementations in Go / Lua", "files of the product with the expression max(TAT, now)", func(t *tree) (string, error) {
		arrival := regexp.MustCompile(`max\((\w+\.)?(tat|s), *now\)`)
		var inGo, inLua []string
		for _, name := range t.product {
			for _, file := range t.files(name) {
				text, err := os.ReadFile(file)
				if err != nil {
					return "", err
				}
				switch {
				case !arrival.Match(text):
				case filepath.Ext(file) == ".lua":
					inLua = append(inLua, t.short(file))
				default:
					inGo = append(inGo, t.short(file))
				}
			}
		}
		t.note("GCRA", append(inGo, inLua...))
		return fmt.Sprintf("%d / %d", len(inGo), len(inLua)), nil
	}},
	{"test files that match no source file", "x_test.go, x_internal_test.go, x_fuzz_test.go, x_example_test.go without x.go beside it, of all test files of the main module", func(t *tree) (string, error) {
		return t.testsWithout("unmatched tests", func(stem string) bool {
			for _, suffix := range []string{"", "_internal", "_fuzz", "_example"} {
				if source, ok := strings.CutSuffix(stem, suffix); ok && exists(source+".go") {
					return true
				}
			}
			return false
		})
	}},
	{"test files named after no source file", "x_test.go, x_topic_test.go without x.go or x.md beside it, of all test files of the main module", func(t *tree) (string, error) {
		return t.testsWithout("tests without a subject", func(stem string) bool {
			dir, name := filepath.Split(stem)
			words := strings.Split(name, "_")
			for n := len(words); n > 0; n-- {
				source := dir + strings.Join(words[:n], "_")
				if exists(source+".go") || exists(source+".md") {
					return true
				}
			}
			return false
		})
	}},
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func goOnly(files []string) []string {
	return slices.DeleteFunc(files, func(f string) bool { return filepath.Ext(f) != ".go" })
}

// testsWithout counts the test files of the main module without a subject, and notes
// their names.
func (t *tree) testsWithout(note string, subject func(stem string) bool) (string, error) {
	var all int
	var without []string
	err := filepath.WalkDir(t.root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != t.root && (d.Name()[0] == '.' || exists(filepath.Join(file, "go.mod"))) {
			return filepath.SkipDir
		}
		if stem, ok := strings.CutSuffix(file, "_test.go"); ok && !d.IsDir() {
			all++
			if !subject(stem) {
				without = append(without, t.short(file))
			}
		}
		return nil
	})
	t.note(note, without)
	return fmt.Sprintf("%d of %d", len(without), all), err
}
