// Package dropin_test compares the packages with those whose names they have.
package dropin_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	original_redis "github.com/go-redis/redis_rate/v10"
	"github.com/stretchr/testify/require"
	original "golang.org/x/time/rate"

	"github.com/sluice-go/sluice/dropin/rate"
	"github.com/sluice-go/sluice/dropin/redis_rate"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// The tests of the originals pass with the import changed, and the address of Redis. Some of them
// allow 10 ms between two calls, which a busy machine exceeds: each has to pass once in 20 runs.
func TestSuitesOfTheOriginals(t *testing.T) {
	for pkg, suite := range map[string]struct {
		module, folder string
		tests          int
	}{
		"rate":       {"golang.org/x/time", "rate", 37},
		"redis_rate": {"github.com/go-redis/redis_rate/v10", ".", 6},
	} {
		t.Run(pkg, func(t *testing.T) {
			change := strings.NewReplacer(
				`"`+strings.TrimSuffix(suite.module+"/"+suite.folder, "/.")+`"`, `"github.com/sluice-go/sluice/dropin/`+pkg+`"`,
				"localhost:6379", redistest.Start(t).Addr(), ":6379", redistest.Start(t).Addr())
			module := strings.TrimSpace(goCommand(t, "list", "-m", "-f", "{{.Dir}}", suite.module))
			files, err := filepath.Glob(filepath.Join(module, suite.folder, "*_test.go"))
			require.NoError(t, err)
			overlay := struct{ Replace map[string]string }{map[string]string{}}
			for _, f := range files {
				source, err := os.ReadFile(f)
				require.NoError(t, err)
				changed := filepath.Join(t.TempDir(), "changed_test.go")
				require.NoError(t, os.WriteFile(changed, []byte(change.Replace(string(source))), 0o600))
				inPlace, err := filepath.Abs(filepath.Join(pkg, "original_"+filepath.Base(f)))
				require.NoError(t, err)
				overlay.Replace[inPlace] = changed
			}
			text, err := json.Marshal(overlay)
			require.NoError(t, err)
			name := filepath.Join(t.TempDir(), "overlay.json")
			require.NoError(t, os.WriteFile(name, text, 0o600))
			binary := filepath.Join(t.TempDir(), "suite.exe")
			goCommand(t, "test", "-c", "-overlay", name, "-vet=off", "-o", binary, "./"+pkg)
			passed, last := map[string]bool{}, []byte(nil)
			for runs := 0; runs < 20 && len(passed) < suite.tests; runs++ {
				last, _ = exec.Command(binary, "-test.v").CombinedOutput()
				for _, line := range regexp.MustCompile(`(?m)^--- PASS: \w+`).FindAllString(string(last), -1) {
					passed[line] = true
				}
			}
			require.Len(t, passed, suite.tests, string(last))
		})
	}
}

func goCommand(t *testing.T, args ...string) string {
	out, err := exec.Command("go", args...).CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// The exported names are there, with the same signatures.
func TestNamesOfTheOriginals(t *testing.T) {
	for _, pair := range [][2]any{
		{new(original.Limiter), new(rate.Limiter)}, {new(original.Reservation), new(rate.Reservation)}, {new(original.Sometimes), new(rate.Sometimes)},
		{new(original_redis.Limiter), new(redis_rate.Limiter)}, {new(original_redis.Limit), new(redis_rate.Limit)}, {new(original_redis.Result), new(redis_rate.Result)},
	} {
		want, got := reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1])
		for m := range want.Methods() {
			same, ok := got.MethodByName(m.Name)
			require.True(t, ok, m.Name)
			require.Equal(t, m.Type.String(), same.Type.String())
		}
		for f := range want.Elem().Fields() {
			if same, ok := got.Elem().FieldByName(f.Name); f.IsExported() {
				require.True(t, ok, f.Name)
				require.Equal(t, f.Type.String(), same.Type.String())
			}
		}
	}
	require.Equal(t, rate.Inf, rate.Limit(original.Inf))
	require.Equal(t, rate.InfDuration, original.InfDuration)
}

// In any order of calls, with a clock that goes back too, the answers are those of the original
// where its floating point is exact.
func TestRateIsTheOriginal(t *testing.T) {
	const step = time.Second / 64
	for range 2000 {
		now, limit, burst := time.Now(), 1<<rand.IntN(5), rand.IntN(6)
		want, got := original.NewLimiter(original.Limit(limit), burst), rate.NewLimiter(rate.Limit(limit), burst)
		var wanted []*original.Reservation
		var gotten []*rate.Reservation
		for range 40 {
			now = now.Add(step * time.Duration(rand.IntN(40)-5))
			switch n := rand.IntN(burst + 3); rand.IntN(6) {
			case 0, 1:
				require.Equal(t, want.AllowN(now, n-1), got.AllowN(now, n-1))
			case 2, 3:
				a, b := want.ReserveN(now, n), got.ReserveN(now, n)
				require.Equal(t, a.OK(), b.OK())
				require.Equal(t, a.DelayFrom(now), b.DelayFrom(now))
				wanted, gotten = append(wanted, a), append(gotten, b)
			case 4:
				if i := rand.IntN(len(wanted) + 1); i < len(wanted) {
					wanted[i].CancelAt(now)
					gotten[i].CancelAt(now)
				}
			case 5:
				want.SetBurstAt(now, n)
				got.SetBurstAt(now, n)
			}
			require.Equal(t, want.TokensAt(now), got.TokensAt(now))
		}
	}
}
