// Package proxy is the gateway: a reverse proxy whose routes and limits come
// from a file and can be exchanged while requests run.
package proxy
