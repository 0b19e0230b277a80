// Package admin is a page for the operators of a service. It shows the
// admissions and denials of its limits, and has a few actions.
//
//	users := admin.Control(algo.Must(algo.NewTokenBucket(algo.PerSecond(10))))
//	panel, err := admin.New(admin.WithPolicy("users", users), admin.WithAuthorize(admin.Bearer(token)))
//	limit := httpmw.Limit(users, keyfunc.ClientIP(), httpmw.WithName("users"), httpmw.WithObserver(panel.Observe))
//	go http.ListenAndServe("127.0.0.1:9090", panel) // the page, on an address of its own
//	http.ListenAndServe(":8080", limit(handler))
//
// # Content
//
// Each policy with its limit, and its admitted, delayed, shadowed (admitted on
// trial) and denied requests in each second of the last five minutes; the keys that
// were limited most, by hash; the remaining quota of one key; the state of adaptive
// limiters ([WithAdaptive]), with the heaviest tenants of an overload if they have fair
// shares; the state of stores on Redis ([WithStore]); and the last decisions with the
// fields that were sent. The page needs no network but the way to this handler.
//
// It shows only this process. A service of several instances has as many
// pages; metrics add up, pages do not.
//
// # Access control
//
// The files of the page are public to all clients that reach the handler. The
// data is not: by default it is served only to clients on this machine, see
// [WithAuthorizeRead]. Actions (looking at a key, forgiving it, blocking it,
// unblocking it, switching a limit off) are denied until [WithAuthorize]
// permits them, and are logged.
//
// An action is a POST with the header X-Sluice-Admin, which no page of another
// origin can send, and which net/http's CrossOriginProtection would refuse
// besides. Nothing that is shown can become markup: the page has no inline
// script or style, its Content-Security-Policy allows none, and all text is set
// as text.
//
// An action names its key in one of three ways: by the hash that the page and the log
// show, by the operators' name for the caller ([WithIdentity]), or in the form that the
// limiter gets, see package keyfunc. An action on a key that no request had counts as a
// typo until the operator repeats it. A request of a blocked key counts as blocked, not
// as denied, and the page lists for each blocked key the operator, the end of the block
// and the reason. A limit that is switched off keeps its blocks.
//
// The function of WithAuthorize decides alone. A function that checks the peer's
// address has to check the Host as well: a web site can point a name of its own
// at this machine, and then has the same origin as the page.
//
// # Where
//
// On an address of its own, or under a path of any mux; the path must end in a
// slash, all URLs of the page are relative to it:
//
//	mux.Handle("/limits/", http.StripPrefix("/limits", panel))
//
// The API behind the page is GET api/state, and POST api/peek, api/reset,
// api/block, api/unblock and api/switch with JSON objects. It serves the page and may change
// with it.
//
// # Cost
//
// [Admin.Observe] is one call for each decision: 40 ns for one that is admitted,
// 70 ns for a denial, 200 ns if every denial is of another key; no allocation,
// no goroutine. Memory is fixed, about 12 KB for each policy, at most 64
// policies, and 100 KB for all, beside [Control]: it does not grow with keys,
// methods or requests.
//
// # When not to use it
//
// For alerts and for anything older than five minutes use metrics. Do not mount
// it where the public can reach it: authorisation is the second line.
package admin
