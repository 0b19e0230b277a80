package reload_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/reload"
)

// BenchmarkApply changes one limit of many, and reads them from a file before.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{1, 100, 10_000, 100_000} {
		texts := make(map[string]string, n)
		for i := range n {
			texts[fmt.Sprint("limit-", i)] = fmt.Sprintf("%d/min burst 20", i+100)
		}
		file, err := json.Marshal(texts)
		if err != nil {
			b.Fatal(err)
		}
		var specs map[string]algo.Spec
		if err := json.Unmarshal(file, &specs); err != nil {
			b.Fatal(err)
		}
		for _, changed := range []int{0, 1, n} {
			b.Run(fmt.Sprintf("%d of %d", changed, n), func(b *testing.B) {
				l := reload.New(reload.Config{})
				if _, err := l.Apply(specs, nil); err != nil {
					b.Fatal(err)
				}
				for i := 1; b.Loop(); i++ {
					for j := range changed {
						name := fmt.Sprint("limit-", j)
						s := specs[name]
						s.Burst = int64(20 + i%2)
						specs[name] = s
					}
					if _, err := l.Apply(specs, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprint("file of ", n), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "limits.json")
			write := func(extra string) {
				if err := os.WriteFile(path, []byte(strings.TrimSuffix(string(file), "}")+extra), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			write("}")
			l := reload.New(reload.Config{})
			look := func() {
				data, err := os.ReadFile(path)
				if err == nil {
					_, err = reload.Load(l, data)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			look()
			for i := 0; b.Loop(); i++ {
				write(fmt.Sprintf(`,"more":"%d/h"}`, i+1))
				look()
			}
		})
	}
}
