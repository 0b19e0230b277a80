// Package live opens the store of a file, watches the file, and keeps debts over a restart.
package live
