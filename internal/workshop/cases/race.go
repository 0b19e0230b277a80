//go:build race

package cases

// Race reports whether this is a build for the race detector.
const Race = true

// slowdown is how many times fewer cases run under the race detector, which
// looks for other things than properties and makes everything slower.
const slowdown = 20
