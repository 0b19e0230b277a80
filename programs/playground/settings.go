package main

import (
	"errors"
	"fmt"
)

// settings are the parameters of the algorithms, from the page.
type settings struct {
	Load  string `json:"load"`
	Rate  int    `json:"rate"`  // of the traffic, requests per second
	Users int    `json:"users"` // who send it
	Limit int    `json:"limit"` // of each user, requests per second
	Burst int    `json:"burst"` // of each user: at once, or in flight
}

// The bounds of the settings. The shapes go up to 10 times the rate for 0.2 s; on
// average they stay below twice the rate.
const (
	mostRate  = 500
	mostUsers = 200
	mostLimit = 500
	mostBurst = 200
)

// check names the first field that is out of range. Text from a client is not repeated.
func (s settings) check() error {
	if _, ok := loadNamed(s.Load); !ok {
		return errors.New("load: unknown name")
	}
	for _, f := range []struct {
		name        string
		value, most int
	}{{"rate", s.Rate, mostRate}, {"users", s.Users, mostUsers}, {"limit", s.Limit, mostLimit}, {"burst", s.Burst, mostBurst}} {
		if f.value < 1 || f.value > f.most {
			return fmt.Errorf("%s is %d, want 1 to %d", f.name, f.value, f.most)
		}
	}
	return nil
}

// preset is the settings that suit a load.
func preset(name string) settings {
	l, _ := loadNamed(name)
	l.preset.Load = name
	return l.preset
}
