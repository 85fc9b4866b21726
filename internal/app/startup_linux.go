package app

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// dropStartup unmaps the executable's pages, which the kernel counts as this process's memory from the first touch on, in
// pieces of 64 KiB. Starting touches nearly all of them, for hundreds of packages are initialised; a fifth is not needed
// again. The others come back from the kernel's cache of the file, where they all stay, within a millisecond in all.
// Where anything is not as expected, nothing is done: it only saves memory.
func dropStartup() {
	path, err := os.Executable()
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	for _, m := range unchanged(f, path) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED)
	}
}

// mapping is a range of addresses; to is the first one behind it.
type mapping struct{ from, to uintptr }

// unchanged are the read-only mappings of the file at path that hold nothing but the file: where a loader or a debugger
// wrote into one, the file does not have what it holds.
func unchanged(smaps io.Reader, path string) (all []mapping) {
	var candidate mapping
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 6 && strings.Contains(fields[0], "-"):
			candidate = mapping{}
			if fields[5] == path && (fields[1] == "r-xp" || fields[1] == "r--p") {
				candidate = addresses(fields[0])
			}
		case len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0" && candidate.to > 0:
			all = append(all, candidate)
		}
	}
	return all
}

// addresses reads "from-to", in hexadecimal digits; the zero value where it is not.
func addresses(text string) mapping {
	from, to, _ := strings.Cut(text, "-")
	first, err := strconv.ParseUint(from, 16, strconv.IntSize)
	if err != nil {
		return mapping{}
	}
	end, err := strconv.ParseUint(to, 16, strconv.IntSize)
	if err != nil || end <= first {
		return mapping{}
	}
	return mapping{uintptr(first), uintptr(end)}
}
