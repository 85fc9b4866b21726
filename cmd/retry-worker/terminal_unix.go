//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// columnsOf a terminal; 0 where the file is none.
func columnsOf(file *os.File) int {
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
