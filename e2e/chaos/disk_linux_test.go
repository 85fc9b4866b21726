package chaos_test

import (
	"math"

	"golang.org/x/sys/unix"

	"retry-worker/internal/testkit"
)

// limitFiles sets the soft limit of a process's file sizes, in bytes; MaxUint64 is none.
func limitFiles(pid int, size uint64) error {
	return unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: math.MaxUint64}, nil)
}

// fullDisk has no file of the worker's take a byte more, while claims come.
func (r *row) fullDisk() {
	testkit.Must(r.t, limitFiles(r.program.PID(), 0))
	r.load(killClaims, 0)
	r.unready()
	r.pass(outlasting)
	testkit.Must(r.t, limitFiles(r.program.PID(), math.MaxUint64))
}
