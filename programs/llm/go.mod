module github.com/sluice-go/sluice/programs/llm

go 1.26.0

replace github.com/sluice-go/sluice => ../..

require (
	github.com/sluice-go/sluice v0.0.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/redis/go-redis/v9 v9.23.0
	github.com/shirou/gopsutil/v3 v3.24.5 // indirect
	github.com/sluice-go/sluice/httpmw/admin v0.0.0
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace github.com/sluice-go/sluice/httpmw/admin => ../../httpmw/admin
