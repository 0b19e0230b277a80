package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/programs/plan/trial"
)

// file is a log with the bytes that were read of it.
type file struct {
	name string
	in   io.Reader
	size int64 // 0: unknown
	read atomic.Int64
}

// Read counts the bytes.
func (f *file) Read(p []byte) (int, error) {
	n, err := f.in.Read(p)
	f.read.Add(int64(n))
	return n, err
}

// open opens the logs; - is stdin.
func open(names []string, stdin io.Reader) (logs []*file, closeAll func(), err error) {
	var opened []*os.File
	closeAll = func() {
		for _, f := range opened {
			f.Close()
		}
	}
	for _, name := range names {
		if name == "-" {
			logs = append(logs, &file{name: "standard input", in: stdin})
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		opened = append(opened, f)
		l := &file{name: name, in: f}
		switch info, err := f.Stat(); {
		case err == nil && info.IsDir():
			closeAll()
			return nil, nil, fmt.Errorf("%s is a folder: name the files in it", name)
		case err == nil && info.Mode().IsRegular():
			l.size = info.Size()
		}
		logs = append(logs, l)
	}
	return logs, closeAll, nil
}

func plain(logs []*file) (all []trial.Log) {
	for _, l := range logs {
		all = append(all, trial.Log{Name: l.name, Reader: l})
	}
	return all
}

// showProgress writes a line each half second if w is a terminal.
func showProgress(w io.Writer, quiet bool, logs []*file, lines *atomic.Int64) (done func()) {
	terminal, ok := w.(*os.File)
	if !ok || quiet {
		return func() {}
	}
	if info, err := terminal.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func() {}
	}
	end := make(chan struct{})
	var running sync.WaitGroup
	began := time.Now()
	running.Go(func() {
		for tick := time.Tick(500 * time.Millisecond); ; {
			select {
			case <-tick:
				fmt.Fprint(w, "\r"+progress(logs, lines.Load(), time.Since(began))+"\x1b[K")
			case <-end:
				fmt.Fprint(w, "\r\x1b[K")
				return
			}
		}
	})
	return func() {
		close(end)
		running.Wait()
	}
}

// progress is the share of the bytes that were read, and the time left at the speed so far.
func progress(logs []*file, lines int64, past time.Duration) string {
	text := fmt.Sprintf("%d lines, %.0f a second", lines, float64(lines)/past.Seconds())
	var size, read int64
	for _, l := range logs {
		if l.size == 0 {
			return text
		}
		size += l.size
		read += l.read.Load()
	}
	if read == 0 {
		return text
	}
	left := time.Duration(float64(past) * float64(size-read) / float64(read))
	return fmt.Sprintf("%3.0f %%  %s, %v left", 100*float64(read)/float64(size), text, left.Round(time.Second))
}
