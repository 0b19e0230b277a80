// Package reload keeps named limits in force while their configuration changes.
//
//	limits, err := reload.Open(ctx, "limits.json", reload.Config{})
//	if err != nil {
//		return err
//	}
//	search, err := limits.Limiter("search")
//
// The file maps names to limits, as text or as objects, see [algo.Spec]:
//
//	{"search": "100/min burst 20", "login": {"rate": "5/min", "algorithm": "sliding-window"}}
//
// A changed file takes effect within two seconds, as a whole or not at all: a mistake leaves all
// limits unchanged and logs a line for each version of the file. Keys keep their debt, as with
// [algo.Spec.Apply], unless the algorithm or another option that cannot be changed in use differs;
// [Changes] names those limits. A file without a limit in use is a mistake, so that no typing error
// removes a limit.
//
// The package reads only files. To change limits on Redis in all instances at once use package
// distributed/rules.
package reload
