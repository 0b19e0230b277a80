//go:build !race

package cases

const slowdown = 1
