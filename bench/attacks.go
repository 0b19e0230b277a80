package main

import (
	"fmt"
	"sync"
)

// attack is one thing that goes wrong in the field, done to several libraries.
type attack struct {
	id    string
	title string
	does  string // the attack
	holds string // the expected behaviour
	tries []try

	// together runs the tries at the same time: they mostly sleep.
	together bool
}

// try is the attack on one library.
type try struct {
	library string
	run     func() outcome
}

// outcome is the result of a try. The figure is counted in the run.
type outcome struct {
	figure string
	holds  bool
}

// verdict is an outcome with the library it belongs to.
type verdict struct {
	library string
	outcome
}

// sluice is the library whose column has to hold.
const sluice = "sluice"

// attacks are all of them, in the order of the report.
func attacks() []attack {
	return append(append(limitAttacks(), keyAttacks()...), append(timeAttacks(), inFlightAttacks()...)...)
}

// each tries an attack on each library for which is holds.
func each(is func(library) bool, run func(library) outcome) (tries []try) {
	for _, l := range those(is) {
		tries = append(tries, try{l.name, func() outcome { return run(l) }})
	}
	return tries
}

// run makes all tries. A try that panics has not held.
func (a attack) run() []verdict {
	verdicts := make([]verdict, len(a.tries))
	var all sync.WaitGroup
	for i, t := range a.tries {
		one := func() { verdicts[i] = verdict{t.library, guarded(t.run)} }
		if a.together {
			all.Go(one)
		} else {
			one()
		}
	}
	all.Wait()
	return verdicts
}

func guarded(run func() outcome) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = outcome{fmt.Sprintf("panics: %v", p), false}
		}
	}()
	return run()
}

// count is how many of n questions are answered with yes.
func count(n int, ask func() bool) (yes int) {
	for range n {
		if ask() {
			yes++
		}
	}
	return yes
}

// atMost is the outcome of admitting got of asked where limit is right.
func atMost(limit, got, asked int) outcome {
	return outcome{fmt.Sprintf("%d of %d admitted", got, asked), got <= limit}
}
