package clientip

import "github.com/sluice-go/sluice/internal/warning"

var (
	warnIgnored = &warning.Once{
		Code:    "keyfunc.forwarded_untrusted",
		Message: "keyfunc: forwarding header ignored because no proxy is trusted; behind a proxy all clients share one key: pass the addresses of your proxies to the key function",
	}
	warnTrustsAll = &warning.Once{
		Code:    "keyfunc.trusts_all",
		Message: "keyfunc: IPConfig.TrustAll without Hops: any client can choose its own key; list your proxies in IPConfig.Trusted",
	}
)
