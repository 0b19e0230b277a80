package httpmw

import "net/http"

// ResetWarnings lets every warning be logged again.
func ResetWarnings() {
	warnTwice.logged.Store(false)
	warnRebuilt.logged.Store(false)
	built.first.Store(0)
	built.second.Store(0)
	failures.last.Store(0)
}

// Shapes has a writer of each shape over w, ShapeOf tells them apart.
func Shapes(w http.ResponseWriter) (all []http.ResponseWriter) {
	for _, shape := range shapes {
		all = append(all, shape(&writer{ResponseWriter: w}))
	}
	return all
}

var ShapeOf = shapeOf

// Watch wraps w as for a limiter that holds slots.
func Watch(w http.ResponseWriter) http.ResponseWriter {
	watched, _ := watch(w, new(hold))
	return watched
}

const ManyBuilt = manyBuilt

// ParseLimits returns pairs of r and t.
func ParseLimits(field string) (pairs [][2]int64) {
	for _, i := range parseLimits(field) {
		pairs = append(pairs, [2]int64{i.remaining, i.after})
	}
	return pairs
}
