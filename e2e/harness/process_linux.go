package harness

import "syscall"

// attributes give a program its own group, so that a terminal's Ctrl-C does not reach it, and let the
// kernel kill it when the thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
