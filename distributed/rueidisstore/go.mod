module github.com/sluice-go/sluice/distributed/rueidisstore

go 1.26.0

replace github.com/sluice-go/sluice => ../..

require (
	github.com/redis/rueidis v1.0.79
	github.com/sluice-go/sluice v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
