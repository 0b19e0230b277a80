package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// fault is one mistake.
type fault struct {
	promise  string // of the Guarantees table that it breaks; "-": none of them
	name     string // what is wrong then
	file     string // from the root of the module
	from, to string // from stands in the file exactly once
	tests    string // pattern for -run: the tests that should find it; "": all of the package
}

// pkg is the directory of the file, which is the package whose tests run.
func (f *fault) pkg() string { return path.Dir(f.file) }

// faults are all faults, in the order of the table.
func faults() []fault {
	return slices.Concat(bucketFaults, keyFaults, windowFaults, composedFaults,
		scriptFaults, storeFaults, adaptiveFaults, httpFaults, grpcFaults, identityFaults)
}

// apply returns the text of the file with the fault in it.
func (f *fault) apply(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.file)))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), f.from); n != 1 {
		return "", fmt.Errorf("%q stands in %s %d times, want once", f.from, f.file, n)
	}
	return strings.Replace(string(text), f.from, f.to, 1), nil
}

// plant writes the faulty file and the overlay that puts it in the place of the
// right one, and returns the overlay's path.
func (f *fault) plant(root, dir string) (string, error) {
	text, err := f.apply(root)
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	faulty := filepath.Join(dir, path.Base(f.file))
	overlay, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(root, filepath.FromSlash(f.file)): faulty},
	})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(faulty, []byte(text), 0o600); err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, overlay, 0o600)
}
