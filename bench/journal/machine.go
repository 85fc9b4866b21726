package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ownCPU is the CPU time of this process so far.
func ownCPU() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil { // cannot fail for oneself
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// noServer is for a store that works in this process.
func noServer() time.Duration { return 0 }

// tick of the CPU times in /proc: USER_HZ is 100 on every Linux Go runs on.
const tick = 10 * time.Millisecond

// machineCPU is the CPU time of everything on this machine so far, what its host took from it included; 0 where
// the system has no /proc.
func machineCPU() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var ticks int64
	for i, f := range strings.Fields(line) {
		n, err := strconv.ParseInt(f, 10, 64)
		if idle := i == 4 || i == 5; err == nil && !idle && i <= 8 { // beyond are guests, counted already
			ticks += n
		}
	}
	return time.Duration(ticks) * tick
}

// childrenCPU is the CPU time of a process and its children so far, ended ones included; 0 where it is gone, or
// the system has no /proc.
func childrenCPU(pid int) time.Duration {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	var ticks int64
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		own := file == fmt.Sprintf("/proc/%d/stat", pid)
		_, rest, _ := strings.Cut(string(text), ") ") // behind the name, which may hold anything
		fields := strings.Fields(rest)
		if len(fields) < 15 || !own && fields[1] != strconv.Itoa(pid) {
			continue
		}
		counted := fields[11:13] // utime, stime
		if own {
			counted = fields[11:15] // and those of children that have ended
		}
		for _, f := range counted {
			n, _ := strconv.ParseInt(f, 10, 64) // the system's own numbers
			ticks += n
		}
	}
	return time.Duration(ticks) * tick
}

// fileSystem is the type of the one that path is on, such as ext4; "unknown" where the system does not say.
func fileSystem(path string) string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "unknown"
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	best, kind := "", "unknown"
	for line := range strings.Lines(string(text)) {
		mount, about, _ := strings.Cut(line, " - ")
		fields, types := strings.Fields(mount), strings.Fields(about)
		if len(fields) < 5 || len(types) == 0 {
			continue
		}
		if at := fields[4]; len(at) >= len(best) && within(path, at) {
			best, kind = at, types[0]
		}
	}
	return kind
}

func within(path, folder string) bool {
	rest, err := filepath.Rel(folder, path)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, "../")
}

// inMemory are file systems on which a sync costs nothing and keeps nothing.
func inMemory(kind string) bool { return kind == "tmpfs" || kind == "ramfs" }

// place is a folder on a disk: the system's temporary one, or the user's cache where that is in memory.
func place() (string, error) {
	dir := os.TempDir()
	if !inMemory(fileSystem(dir)) {
		return dir, nil
	}
	return os.UserCacheDir()
}

// syncTime is the mean time of a 4 KiB append with fsync, one after the other: what the disk allows one commit.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "sync")
	if err != nil {
		return 0, fmt.Errorf("try the disk: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page := make([]byte, 4096)
	n, began := 0, time.Now()
	for ; time.Since(began) < 500*time.Millisecond; n++ {
		if _, err := f.Write(page); err != nil {
			return 0, fmt.Errorf("try the disk: %w", err)
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("try the disk: %w", err)
		}
	}
	return time.Since(began) / time.Duration(n), nil
}
