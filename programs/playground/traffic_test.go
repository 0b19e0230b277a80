package main

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// arrivals counts what arrives in each tenth of a second of d.
func arrivals(name string, rate, users int, d time.Duration) (perTenth []int, all []arrival) {
	l, _ := loadNamed(name)
	t := newTraffic(l, rate, users)
	perTenth = make([]int, d/(100*time.Millisecond))
	for {
		a := t.next()
		if a.at >= d {
			return perTenth, all
		}
		perTenth[a.at/(100*time.Millisecond)]++
		all = append(all, a)
	}
}

func sum(ns []int) (total int) {
	for _, n := range ns {
		total += n
	}
	return total
}

func TestShapes(t *testing.T) {
	tenths, _ := arrivals("steady", 100, 1, 2*time.Second)
	for _, n := range tenths {
		require.InDelta(t, 10, n, 1)
	}
	tenths, _ = arrivals("burst", 100, 1, 4200*time.Millisecond)
	require.InDelta(t, 2, tenths[0], 1)
	require.InDelta(t, 200, sum(tenths[7:9]), 3)
	require.InDelta(t, 2, tenths[10], 1)
	tenths, _ = arrivals("spike", 100, 1, 10*time.Second)
	require.InDelta(t, 5, tenths[9], 1)
	require.InDelta(t, 40, tenths[20], 1)
	require.InDelta(t, 5, tenths[41], 1)
	tenths, _ = arrivals("retry", 100, 1, 8*time.Second)
	require.InDelta(t, 40, tenths[15], 1)
	require.InDelta(t, 6, tenths[30], 1)
	_, slow := arrivals("slow", 100, 1, 10*time.Second)
	require.Equal(t, usualWork, slow[0].work)
	require.Equal(t, slowWork, slow[500].work)
	require.Equal(t, usualWork, slow[900].work)
}

// TestUsers: at random but the same each time, and most from few.
func TestUsers(t *testing.T) {
	tenths, first := arrivals("users", 400, 100, 5*time.Second)
	_, second := arrivals("users", 400, 100, 5*time.Second)
	require.Equal(t, first, second)
	require.InDelta(t, 2000, sum(tenths), 200)
	of := map[int]int{}
	for _, a := range first {
		require.Less(t, a.user, 100)
		of[a.user]++
	}
	require.Greater(t, of[0], 10*of[50])
	require.Greater(t, len(of), 30)

	_, even := arrivals("steady", 400, 4, 5*time.Second)
	of = map[int]int{}
	for _, a := range even {
		of[a.user]++
	}
	for user := range 4 {
		require.InDelta(t, 500, of[user], 100)
	}
}

// TestBounded: no shape brings more than 1.7 times the rate on average.
func TestBounded(t *testing.T) {
	for _, l := range loads {
		tenths, all := arrivals(l.Name, mostRate, mostUsers, 40*time.Second)
		require.LessOrEqual(t, sum(tenths), 40*mostRate*17/10, l.Name)
		require.True(t, slices.IsSortedFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) }), l.Name)
	}
}

func TestStrip(t *testing.T) {
	var s strip
	s.advance(50 * time.Millisecond)
	s.begin(false)
	s.begin(true)
	s.advance(250 * time.Millisecond)
	s.at().denied++
	require.Equal(t, []int{1, 1, 0, 0, 0, 0}, s.between(0, 2))
	require.Equal(t, []int{0, 0, 1}, s.between(2, 3))
	s.advance(time.Minute)
	got := s.between(0, columnAt(time.Minute))
	require.Len(t, got, 3*(columns-1))
	require.Zero(t, sum(got), "older arrivals are forgotten")
}

func TestDensity(t *testing.T) {
	var s strip
	for i := range 30 { // one every 20 ms
		s.advance(time.Duration(i) * 20 * time.Millisecond)
		s.begin(false)
	}
	require.Equal(t, 5, s.starts.Tenth)
	require.Equal(t, 30, s.starts.Second)
	s.advance(5 * time.Second)
	s.starts.restart()
	s.begin(false)
	require.Equal(t, 1, s.starts.Tenth)
	require.Equal(t, 1, s.starts.Second)
}
