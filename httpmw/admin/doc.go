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
// Each policy with its limit, and its admitted, delayed, shadowed (admitted on trial) and
// denied requests in each second of the last five minutes; the keys that were limited most, by
// hash, and apart those that a limit on trial would deny; the remaining quota of one key; the
// state of adaptive limiters ([WithAdaptive]), with the heaviest tenants of an overload if they
// have fair shares; the state of stores on Redis ([WithStore]); and the last decisions with the
// fields that were sent. Beside each action the page says where it holds. The page loads
// nothing from other hosts.
//
// It shows only this process: each instance of a service has its own page. Use metrics for
// sums.
//
// # Access control
//
// The files of the page are public to all clients that reach the handler. The
// data is not: by default it is served only to clients on this machine, see
// [WithAuthorizeRead]. Actions (looking at a key, forgiving it, blocking it,
// unblocking it, raising or lowering its limit, switching a limit off) are denied until
// [WithAuthorize] permits them, and are logged.
//
// An action is a POST with the header X-Sluice-Admin, which no page of another origin can send.
// No shown text can become markup: the page has no inline script or style, its
// Content-Security-Policy allows none, and all text is set as text.
//
// An action names its key in one of three ways: by the hash that the page and the log
// show, by the operators' name for the caller ([WithIdentity]), or in the form that the
// limiter gets, see package keyfunc. An action on a key that no request had counts as a
// typo until the operator repeats it. A request of a blocked key counts as blocked, not
// as denied, and the page lists for each blocked key the operator, the end of the block
// and the reason, and so for each key with another limit. A limit that is switched off keeps both. It is on again
// after an hour unless the operator says otherwise. On Redis, with package rules, it is off in all
// instances, also after a restart; otherwise in this process until its restart.
//
// The table of a limit that is full names the prefixes that a tenth of the newest keys share, never
// a whole key. A limit that denies nothing, on trial or for lack of a rule, is marked.
//
// Only the function of WithAuthorize decides. If it checks the peer's address, it must check
// the Host too: a web site can point a name of its own at this machine, and then has the same
// origin as the page.
//
// # Mounting
//
// On an address of its own, or under a path of any mux; the path must end in a
// slash, all URLs of the page are relative to it:
//
//	mux.Handle("/limits/", http.StripPrefix("/limits", panel))
//
// # API
//
// GET api/state returns the data of the page, and may change with it. The actions are POST with
// a JSON object; policy names the limit, and key, who (a list) or hash the key as above:
//
//	api/why      the answer that a request would get now, and why; without policy, of all limits
//	api/reset    forget the debt of the key, and lift a block
//	api/block    deny all requests of the key for "seconds"; "note" says why
//	api/unblock  lift a block
//	api/adjust   give the key another "limit" for "seconds"; without "limit", its own again
//	api/switch   "on": false admits all requests that are not blocked for "seconds", an hour without it
//
// Errors are {"error": "..."} with the status 400, 403, 404, 409 (the key is not known: repeat with
// "unseen": true) or 502. With curl:
//
//	act() { curl -s http://127.0.0.1:9090/api/$1 -H "Authorization: Bearer $TOKEN" -H 'X-Sluice-Admin: 1' --json "$2"; }
//	act why    '{"key": "user-7"}'
//	act adjust '{"policy": "users", "key": "user-7", "limit": "200/min", "seconds": 3600, "note": "migration"}'
//	act block  '{"policy": "users", "key": "user-7", "seconds": 600, "note": "ticket 7"}'
//	act reset  '{"policy": "users", "key": "user-7"}'
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
