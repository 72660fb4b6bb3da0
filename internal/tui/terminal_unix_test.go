package tui

import "syscall"

// ownTerminal makes the program's stdin its controlling terminal, as a shell's is.
func ownTerminal() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true, Setctty: true} }
