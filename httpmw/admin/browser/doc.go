// Package browser tests the page of package admin in a real Chromium. It is a
// module of its own, so that the library does not depend on the driver of a
// browser. "make browser" runs it; with PICTURES=1 it also takes the pictures
// in docs/admin, which takes six minutes.
package browser
