//go:build unix && !linux

package postgres

import (
	"os/exec"
	"strconv"
	"strings"
)

// processes of the server: the postmaster and its children. Those of a dead postmaster are not found;
// unless they are paused, they end by themselves.
func (d *dataDir) processes(postmaster int) []process {
	if postmaster == 0 {
		return nil
	}
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	if err != nil {
		return nil
	}
	var found []process
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || strings.HasPrefix(fields[2], "Z") {
			continue
		}
		pid, errPID := strconv.Atoi(fields[0])
		parent, errParent := strconv.Atoi(fields[1])
		if errPID == nil && errParent == nil && (pid == postmaster || parent == postmaster) {
			found = append(found, process{pid: pid, stopped: strings.HasPrefix(fields[2], "T")})
		}
	}
	return found
}
