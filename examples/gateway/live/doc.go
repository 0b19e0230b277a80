// Package live keeps limits alive while their configuration changes: debts
// outlast a reload. It also watches the file, and opens the store.
//
// It belongs to the commands around it. A service that keeps its limits in Redis
// and wants them changed everywhere at once is better served by the Rules of
// package distributed.
package live
