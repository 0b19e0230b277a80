module github.com/sluice-go/sluice/distributed/rueidisstore

go 1.26.0

replace github.com/sluice-go/sluice => ../..

require (
	github.com/redis/rueidis v1.0.60
	github.com/sluice-go/sluice v0.0.0
	github.com/stretchr/testify v1.10.0
)

require (
	github.com/anishathalye/porcupine v1.0.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	github.com/redis/go-redis/v9 v9.19.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sys v0.39.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
