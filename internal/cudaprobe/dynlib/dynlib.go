// Package dynlib loads a shared library at run time, without cgo.
package dynlib

import (
	"fmt"
	"strings"
)

// MissingError says that a library is nowhere.
type MissingError struct {
	Name    string
	Folders []string // where it was looked for, beside the loader's own
}

func (e MissingError) Error() string {
	return fmt.Sprintf("no %s: neither the loader finds it, nor is it in %s", e.Name, strings.Join(e.Folders, ", "))
}

// SymbolError says that a library lacks a function.
type SymbolError struct {
	Symbol string
	Path   string
}

func (e SymbolError) Error() string { return fmt.Sprintf("%s has no function %s", e.Path, e.Symbol) }
