//go:build race

package cases

// slowdown is how many times fewer cases run under the race detector, which
// looks for other things than properties and makes everything slower.
const slowdown = 10
