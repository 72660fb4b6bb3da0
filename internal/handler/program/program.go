// Package program runs a user's program as the handler of a worker. It is started once, unmodified.
package program
