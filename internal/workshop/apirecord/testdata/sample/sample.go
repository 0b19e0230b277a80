// Package sample has one of each declaration.
package sample

import "io"

const Answer = 42

var Default Limit

// Limit shows its methods.
type Limit struct {
	direct
	Burst int
}

// SetRate is declared here.
func (l *Limit) SetRate(rate int, burst ...int) (was int, err error) { return 0, nil }

type direct struct{ indirect }

// Len is promoted once.
func (direct) Len() int { return 0 }

type indirect struct{}

// Reset is promoted twice, which go doc does not show.
func (*indirect) Reset(key string) {}

// Stream hides the methods of an embedded interface that is not exported.
type Stream struct{ reader }

type reader interface{ Read(p []byte) (int, error) }

// File shows that it embeds an interface that is exported.
type File struct{ io.Closer }

// Reader is an interface.
type Reader interface {
	io.Reader
	private()
}

// Alias is another name.
type Alias = Limit

// Func is a function.
type Func func(key string) bool

// New returns a type that users cannot name.
func New() *direct { return nil }

// Do has no unnamed result.
func Do(f Func) io.Reader { return nil }
