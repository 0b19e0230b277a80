package reload_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-go/sluice/algo/reload"
)

func ExampleOpen() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "limits.json")
	_ = os.WriteFile(path, []byte(`{"search": "100/min burst 20", "login": "5/min"}`), 0o600)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	limits, err := reload.Open(ctx, path, reload.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	search, err := limits.Limiter("search") // for httpmw.Limit, or directly
	if err != nil {
		fmt.Println(err)
		return
	}
	lease, err := search.Acquire(ctx, "user-7", 1)
	fmt.Println(lease.Allowed, lease.Remaining, err)
	// Output: true 19 <nil>
}
