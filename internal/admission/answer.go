package admission

import "github.com/sluice-go/sluice/algo"

// Blame is the party that caused a refusal. It selects the answer.
type Blame uint8

// The parties.
const (
	nobody    Blame = iota
	Caller          // it has spent its quota
	Barred          // the caller is banned
	Request         // its cost can never fit the limit
	Service         // it lacks capacity
	Keyless         // the call has no key
	Undecided       // the limiter or the key function failed
	Gone            // the call's context ended
)

// blames maps the reason of a limiter's denial to the blame.
var blames = [...]Blame{algo.Admitted: Caller, algo.Quota: Caller, algo.Overload: Service, algo.Banned: Barred, algo.Never: Request}

// Answer is what clients get for a refusal, over both protocols. None of it depends on input
// from a client.
type Answer struct {
	Status      int    // of HTTP
	Code        int    // of gRPC
	Reason      string // of ErrorInfo
	Text        string // of a status of gRPC
	Type, Title string // of problem details
}

// The types and titles of draft-ietf-httpapi-ratelimit-headers. Nothing is registered for a
// missing key, which has a status of its own, for a ban, which has the one of a quota, and for a
// cost that never fits, whose type is ours.
const (
	quotaType     = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	quotaTitle    = "Request cannot be satisfied as assigned quota has been exceeded"
	capacityType  = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	capacityTitle = "Request cannot be satisfied due to temporary server capacity constraints"
	neverType     = "https://pkg.go.dev/github.com/sluice-go/sluice/algo#Never"
	neverTitle    = "The request costs more than its limit can ever admit"
	noType        = "about:blank"
)

const textOverload = "the server cannot take the call at the moment"

// answers is the only table of answers.
var answers = [...]Answer{
	Caller:    {429, 8, "RATE_LIMIT_EXCEEDED", "rate limit exceeded", quotaType, quotaTitle},
	Barred:    {429, 8, "BANNED", "the caller is banned", noType, "The caller is banned"},
	Request:   {429, 8, "RATE_LIMIT_EXCEEDED", "the call costs more than its rate limit can ever admit", neverType, neverTitle},
	Service:   {503, 14, "SERVER_OVERLOADED", textOverload, capacityType, capacityTitle},
	Keyless:   {0, 0, "KEY_MISSING", "the call lacks the identity that its rate limit counts by", noType, "The request lacks the identity that its limit counts by"},
	Undecided: {503, 14, "SERVER_OVERLOADED", textOverload, capacityType, capacityTitle},
	Gone:      {503, 1, "", "", "", ""},
}

// Reasons lists all reasons of answers.
var Reasons = []string{"RATE_LIMIT_EXCEEDED", "SERVER_OVERLOADED", "KEY_MISSING", "BANNED"}

// Blames lists the parties for which a policy has answers.
var Blames = []Blame{Caller, Barred, Request, Service, Keyless, Undecided}
