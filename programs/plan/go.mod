module github.com/sluice-go/sluice/programs/plan

go 1.26.0

require (
	github.com/sluice-go/sluice v0.0.0
	github.com/sluice-go/sluice/programs/gateway v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
	github.com/tidwall/gjson v1.20.0
	gonum.org/v1/plot v0.17.0
)

require (
	codeberg.org/go-fonts/liberation v0.5.0 // indirect
	codeberg.org/go-latex/latex v0.2.0 // indirect
	codeberg.org/go-pdf/fpdf v0.11.1 // indirect
	git.sr.ht/~sbinet/gg v0.7.0 // indirect
	github.com/ajstarks/svgo v0.0.0-20211024235047-1546f124cd8b // indirect
	github.com/anishathalye/porcupine v1.0.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-jose/go-jose/v4 v4.1.8 // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	github.com/shoenig/go-m1cpu v0.2.4 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	golang.org/x/image v0.30.0 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)

replace (
	github.com/sluice-go/sluice => ../..
	github.com/sluice-go/sluice/programs/gateway => ../gateway
)

replace github.com/sluice-go/sluice/httpmw/admin => ../../httpmw/admin

replace github.com/sluice-go/sluice/algo/telemetry/otelmetrics => ../../algo/telemetry/otelmetrics
