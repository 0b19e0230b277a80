// Package redistest starts real redis-server processes for tests, and puts a
// proxy with faults in front of them.
//
// Everything listens on 127.0.0.1 on free ports, keeps nothing on disk beyond
// the test's temporary folder, and is killed by process id when the test ends.
// A machine without redis-server fails the test: a test that is skipped proves
// nothing.
//
// SLUICE_REDIS_SERVER names another server than the redis-server of the PATH, such as
// valkey-server.
//
// It is for the tests of this module only.
package redistest
