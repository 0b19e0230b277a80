package main

import (
	"container/heap"
	"time"
)

// event is something that is due for an attempt.
type event struct {
	at   time.Duration
	what kind
	a    *attempt
}

type kind uint8

const (
	begins  kind = iota // its delay is over
	ends                // its handler returns
	retries             // it tries again
)

// queue has the events in the order of time.
type queue struct{ events events }

func (q *queue) push(e event) { heap.Push(&q.events, e) }

func (q *queue) pop() event { return heap.Pop(&q.events).(event) }

// next is when the first event is due, or far away.
func (q *queue) next() time.Duration {
	if len(q.events) == 0 {
		return 1 << 62
	}
	return q.events[0].at
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}
