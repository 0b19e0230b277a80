// Package guard limits misuse: [Ban] bans keys that keep exceeding a limit, and
// [FailuresOnly] charges work that fails, against guessed passwords and scans. Both are
// limiters over any limiter. On Redis the Ban method of a limit of package distributed bans a
// key in all instances.
package guard
