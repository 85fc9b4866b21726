//go:build unix && !linux

package harness

import "syscall"

// attributes give a program its own group, so that a terminal's Ctrl-C does not reach it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
