//go:build !race

package cases

// Race reports whether this is a build for the race detector.
const Race = false

const slowdown = 1
