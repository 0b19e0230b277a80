module github.com/sluice-go/sluice/dropin

go 1.26.0

replace github.com/sluice-go/sluice => ..

require (
	github.com/go-redis/redis_rate/v10 v10.0.1
	github.com/redis/go-redis/v9 v9.19.0
	github.com/sluice-go/sluice v0.0.0
	golang.org/x/time v0.16.0
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/stretchr/testify v1.10.0
	go.uber.org/atomic v1.11.0 // indirect
)
