// Package redis compares package distributed with redis_rate and with a plain
// script call, on one server in one run:
//
//	go test -run '^$' -bench Redis -benchtime 1x ./redis
package redis
