package httpmw

import (
	"io"
	"net/http"
)

// A shape is a set of optional interfaces, one bit for each.
const (
	canFlush = 1 << iota
	canBeHijacked
	canReadFrom
	canPush
	canNotify
)

// shapeOf returns the interfaces that w has.
func shapeOf(w http.ResponseWriter) (shape int) {
	if _, ok := w.(http.Flusher); ok {
		shape |= canFlush
	}
	if _, ok := w.(http.Hijacker); ok {
		shape |= canBeHijacked
	}
	if _, ok := w.(io.ReaderFrom); ok {
		shape |= canReadFrom
	}
	if _, ok := w.(http.Pusher); ok {
		shape |= canPush
	}
	if _, ok := w.(http.CloseNotifier); ok { // handlers still ask for it
		shape |= canNotify
	}
	return shape
}

// shapes makes a writer of each shape. A type has its methods or has not, so
// that each set of interfaces needs a type of its own.
var shapes = [32]func(*writer) http.ResponseWriter{
	func(w *writer) http.ResponseWriter { return w },
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
		}{w, flusher{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			hijacker
		}{w, hijacker{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
			hijacker
		}{w, flusher{w}, hijacker{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			readerFrom
		}{w, readerFrom{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
			readerFrom
		}{w, flusher{w}, readerFrom{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			hijacker
			readerFrom
		}{w, hijacker{w}, readerFrom{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
			hijacker
			readerFrom
		}{w, flusher{w}, hijacker{w}, readerFrom{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			pusher
		}{w, pusher{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
			pusher
		}{w, flusher{w}, pusher{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			hijacker
			pusher
		}{w, hijacker{w}, pusher{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
			hijacker
			pusher
		}{w, flusher{w}, hijacker{w}, pusher{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			readerFrom
			pusher
		}{w, readerFrom{w}, pusher{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
			readerFrom
			pusher
		}{w, flusher{w}, readerFrom{w}, pusher{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			hijacker
			readerFrom
			pusher
		}{w, hijacker{w}, readerFrom{w}, pusher{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
			hijacker
			readerFrom
			pusher
		}{w, flusher{w}, hijacker{w}, readerFrom{w}, pusher{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			notifier
		}{w, notifier{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
			notifier
		}{w, flusher{w}, notifier{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			hijacker
			notifier
		}{w, hijacker{w}, notifier{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
			hijacker
			notifier
		}{w, flusher{w}, hijacker{w}, notifier{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			readerFrom
			notifier
		}{w, readerFrom{w}, notifier{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
			readerFrom
			notifier
		}{w, flusher{w}, readerFrom{w}, notifier{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			hijacker
			readerFrom
			notifier
		}{w, hijacker{w}, readerFrom{w}, notifier{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
			hijacker
			readerFrom
			notifier
		}{w, flusher{w}, hijacker{w}, readerFrom{w}, notifier{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			pusher
			notifier
		}{w, pusher{w}, notifier{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
			pusher
			notifier
		}{w, flusher{w}, pusher{w}, notifier{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			hijacker
			pusher
			notifier
		}{w, hijacker{w}, pusher{w}, notifier{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
			hijacker
			pusher
			notifier
		}{w, flusher{w}, hijacker{w}, pusher{w}, notifier{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			readerFrom
			pusher
			notifier
		}{w, readerFrom{w}, pusher{w}, notifier{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
			readerFrom
			pusher
			notifier
		}{w, flusher{w}, readerFrom{w}, pusher{w}, notifier{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			hijacker
			readerFrom
			pusher
			notifier
		}{w, hijacker{w}, readerFrom{w}, pusher{w}, notifier{w}}
	},
	func(w *writer) http.ResponseWriter {
		return struct {
			*writer
			flusher
			hijacker
			readerFrom
			pusher
			notifier
		}{w, flusher{w}, hijacker{w}, readerFrom{w}, pusher{w}, notifier{w}}
	},
}
