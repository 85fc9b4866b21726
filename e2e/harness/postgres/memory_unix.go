//go:build unix && !linux

package postgres

import (
	"os/exec"
	"strconv"
)

// freeSegment removes a segment of System V shared memory.
func freeSegment(_, id int) { _ = exec.Command("ipcrm", "-m", strconv.Itoa(id)).Run() }
