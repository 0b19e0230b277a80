// Package reload keeps named limits in force while their configuration changes.
//
//	limits, err := reload.Open(ctx, "limits.json", reload.Config{})
//	if err != nil {
//		return err
//	}
//	search, err := limits.Limiter("search")
//
// The file has a limit for each name, as text or as an object, see [algo.Spec]:
//
//	{"search": "100/min burst 20", "login": {"rate": "5/min", "algorithm": "sliding-window"}}
//
// A changed file is in force within two seconds, as a whole or not at all: with a mistake in it
// all limits stay as they are, and the log has a line for each version of the file. Keys keep their
// debt, as with [algo.Spec.Apply], unless the algorithm or another option that cannot be changed in
// use differs; [Changes] names those limits. A limit in use that is missing in the file is a
// mistake, so that no limit is off by a typing error.
//
// The package reads files and knows no network. Package distributed/rules has limits on Redis
// that change in all instances at once.
package reload
