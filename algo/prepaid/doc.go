// Package prepaid charges prepaid credits after a plan: [First] over a plan and balances, of
// this process ([Credits]) or on Redis (the Credits of package distributed).
package prepaid
