//go:build !linux

package journal

// local takes every file system for a local one: workers run on Linux, and elsewhere they are only tried.
func local(string) error { return nil }
