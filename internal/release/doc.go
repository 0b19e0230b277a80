// Package release tests release.sh, which makes a version. Its module pins the tools of
// releases and of the workflows.
package release
