package guides_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// checkPassword is the login.
func checkPassword(w http.ResponseWriter, r *http.Request) {
	if _, password, _ := r.BasicAuth(); password != "secret" {
		w.WriteHeader(http.StatusUnauthorized)
	}
}

type accountKey struct{}

// withAccount puts the account of a form into the context.
func withAccount(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 4096)
		account := strings.ToLower(r.PostFormValue("account"))
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accountKey{}, account)))
	})
}

func accountOf(ctx context.Context) (string, bool) {
	account, _ := ctx.Value(accountKey{}).(string)
	return account, account != "" // without an account: 400, by WithMissingKey
}

// checkForm is the login.
func checkForm(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("password") != "secret" {
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// A form has the account in its body.
func Example_loginForm() {
	perAccount := guard.FailuresOnly(algo.Must(algo.NewTokenBucket(algo.PerHour(2))))
	limit := httpmw.Limit(perAccount, keyfunc.Context(accountOf),
		httpmw.WithMissingKey(http.StatusBadRequest),
		httpmw.WithRefundIf(func(status int) bool { return status != http.StatusUnauthorized }))
	login := withAccount(limit(http.HandlerFunc(checkForm)))

	for _, form := range []string{
		"account=alice&password=secret", "account=Alice&password=a", "account=alice&password=b",
		"account=alice&password=c", "account=bob&password=secret", "password=secret",
	} {
		r := httptest.NewRequest("POST", "/login", strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		login.ServeHTTP(w, r)
		fmt.Print(w.Code, " ")
	}
	// Output: 200 401 401 429 200 400
}

func Example_login() {
	// Five wrong passwords an hour for each account, 50 for each address. An address
	// that goes on when it is denied is banned, for 10 minutes at first.
	perAccount := guard.FailuresOnly(algo.Must(algo.NewTokenBucket(algo.PerHour(5))))
	perAddress := guard.FailuresOnly(algo.Must(algo.NewTokenBucket(algo.PerHour(50))))
	banned := algo.Must(guard.NewBan(perAddress, algo.PerMinute(20), 10*time.Minute, 24*time.Hour))
	atOnce := algo.Must(adaptive.PerKey(3))

	limit := httpmw.Limits([]httpmw.Policy{
		{Name: "at-once", Limiter: atOnce, Key: keyfunc.BasicUser()},
		{Name: "account", Limiter: perAccount, Key: keyfunc.BasicUser()},
		{Name: "address", Limiter: banned, Key: keyfunc.ClientIP()},
	},
		httpmw.WithHeaders(httpmw.None),
		httpmw.WithMissingKey(http.StatusBadRequest),
		httpmw.WithRefundIf(func(status int) bool { return status != http.StatusUnauthorized }))
	login := limit(http.HandlerFunc(checkPassword))

	try := func(account, password string) int {
		r := httptest.NewRequest("POST", "/login", nil)
		r.SetBasicAuth(account, password)
		w := httptest.NewRecorder()
		login.ServeHTTP(w, r)
		return w.Code
	}
	for range 100 {
		try("alice", "secret")
	}
	for range 7 {
		fmt.Print(try("alice", "guess"), " ")
	}
	fmt.Println(try("alice", "secret"), try("bob", "secret"))
	// Output: 401 401 401 401 401 429 429 429 200
}
