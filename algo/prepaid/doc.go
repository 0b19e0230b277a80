// Package prepaid charges prepaid credits for what a plan does not cover: [First] over a plan
// and balances, of this process ([Credits]) or on Redis (the Credits of package distributed).
package prepaid
