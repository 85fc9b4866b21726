package postgres

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processes of the server, the postmaster included: those of its name that work in its folder. So they
// are found when the postmaster is dead, too. Dead ones whose parent has not noticed do not count.
func (d *dataDir) processes(int) []process {
	home, err := filepath.EvalSymlinks(d.path)
	if err != nil {
		return nil
	}
	entries, _ := os.ReadDir("/proc")
	var found []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if err != nil || (dir != home && !strings.HasPrefix(dir, home+"/")) {
			continue
		}
		if name, state := status(e.Name()); name == "postgres" && state != 'Z' && state != 'X' {
			found = append(found, process{pid: pid, stopped: state == 'T' || state == 't'})
		}
	}
	return found
}

// status is a process's name and state, from "4711 (postgres) S …".
func status(pid string) (name string, state byte) {
	content, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	begin, end := bytes.IndexByte(content, '('), bytes.LastIndexByte(content, ')')
	if err != nil || begin < 0 || end+2 >= len(content) {
		return "", 'X'
	}
	return string(content[begin+1 : end]), content[end+2]
}
