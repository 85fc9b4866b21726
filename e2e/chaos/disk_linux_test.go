package chaos_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
)

// A place where a worker's SQLite file soon has no room left, and later has some again.
type place struct {
	dir  string
	fill func(*program)
	free func(*program)
	// says is what an operator reads in /readyz.
	says string
}

const (
	smallDisk = 16 << 20
	// leftRoom when the disk is all but full, in bytes.
	leftRoom = 256 << 10
	// fullFor is how long the disk stays full.
	fullFor = 3 * time.Second
)

// A full disk: jobs go back as they came, the reason is told, and the worker goes on by itself when there is room.
// Everywhere the limit of a file's size stands for the disk; a small file system is tried where mounting is allowed.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	t.Run("file size limit", func(t *testing.T) { playFullDisk(t, limited(t)) })
	t.Run("small file system", func(t *testing.T) {
		d, err := mounted(t)
		if err != nil {
			report(t, "SQLite, small file system", "mounting is not allowed here (%v): the file size limit alone was tried", err)
			return
		}
		playFullDisk(t, d)
	})
}

func playFullDisk(t *testing.T, d place) {
	begun := time.Now()
	path := filepath.Join(d.dir, "journal.db")
	s := newStub(t, "FULL")
	p := serve(t, settings{name: "worker", gateway: s.Addr(), url: "sqlite:" + path})
	end := s.feed()
	s.answered(20)
	d.fill(p)
	reason := p.unready()
	noticed := s.Now()
	if !strings.Contains(reason, d.says) {
		t.Errorf("/readyz says %q, want %q in it", reason, d.says)
	}
	p.logged("the journal cannot be written")
	s.expectHandedBack()
	pass(t, fullFor)
	if !strings.Contains(p.out.Text(), "the journal can be written again") { // there may be room for a while, in a file that begins anew
		s.expectNoPolls(noticed)
	}
	s.expectHistory("sqlite:" + path)
	d.free(p)
	p.ready()
	s.answered(s.Counts().Settled + 20)
	end()
	s.settle()
	p.stop()
	a := look(t, "sqlite:"+path)
	found, returned := s.holdAgainst(a), s.handedBack()
	a.oneAttemptPerCount(false)
	report(t, "SQLite, "+t.Name()[len("TestDiskFull/"):], "full for %.0f s under load; %d jobs, %d attempts, one answer each, %d given back with their retries; %.1f s; /readyz: %s",
		fullFor.Seconds(), len(s.jobs), found.attempts, returned, time.Since(begun).Seconds(), reason)
}

// expectHistory reads the history of a claim that was answered, beside the worker, whatever its state.
func (s *stub) expectHistory(url string) {
	s.t.Helper()
	s.mu.Lock()
	first := s.jobs[0]
	s.mu.Unlock()
	if out, code := once(s.t, url, "history", first.claim); code != 0 || !strings.Contains(out, first.claim) {
		s.t.Errorf("`history %s` beside the worker: exit status %d, %q", first.claim, code, out)
	}
	if record, _ := s.Job(first.key); record.State != gateway.Completed {
		s.t.Errorf("the first job is %v, want it completed before the disk was full", record.State)
	}
}

// limited is a place where no file of the worker's may grow beyond what it is.
func limited(t *testing.T) place {
	d := place{dir: folder(t), says: "disk"}
	d.fill = func(p *program) {
		// No more than it has: unlike a disk's, the room up to a limit cannot be asked for, so that one page may
		// still be written, which reopens the journal, where a batch may not.
		info, err := os.Stat(filepath.Join(d.dir, "journal.db-wal"))
		testkit.Must(t, err)
		testkit.Must(t, limitFiles(p.PID(), uint64(info.Size())))
	}
	d.free = func(p *program) { testkit.Must(t, limitFiles(p.PID(), math.MaxUint64)) }
	return d
}

// limitFiles sets the soft limit of a process's file sizes, in bytes; MaxUint64 is none.
func limitFiles(pid int, size uint64) error {
	limit := [2]uint64{size, math.MaxUint64}
	const rlimitFSize = 1
	if _, _, failed := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), rlimitFSize, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); failed != 0 {
		return fmt.Errorf("limit the file sizes of process %d: %w", pid, failed)
	}
	return nil
}

// fullDisk has no file of the worker's take a byte more, while claims come.
func (r *row) fullDisk() {
	testkit.Must(r.t, limitFiles(r.program.PID(), 0))
	r.load(killClaims, 0)
	r.unready()
	r.pass(outlasting)
	testkit.Must(r.t, limitFiles(r.program.PID(), math.MaxUint64))
}

// mounted is a place on a file system of its own in memory; the error tells that this user may not mount one.
func mounted(t *testing.T) (place, error) {
	d := place{dir: folder(t), says: "no room is left on the disk"}
	if err := syscall.Mount("chaos", d.dir, "tmpfs", 0, fmt.Sprintf("size=%d", smallDisk)); err != nil {
		return d, err
	}
	t.Cleanup(func() { testkit.Must(t, syscall.Unmount(d.dir, syscall.MNT_DETACH)) })
	filler := filepath.Join(d.dir, "filler")
	d.fill = func(*program) {
		var disk syscall.Statfs_t
		testkit.Must(t, syscall.Statfs(d.dir, &disk))
		free := int64(disk.Bavail) * disk.Bsize
		err := os.WriteFile(filler, make([]byte, max(free-leftRoom, 0)), 0o600)
		if errors.Is(err, syscall.ENOSPC) { // the worker has written since
			var file os.FileInfo
			if file, err = os.Stat(filler); err == nil {
				err = os.Truncate(filler, max(file.Size()-leftRoom, 0))
			}
		}
		testkit.Must(t, err)
	}
	d.free = func(*program) { testkit.Must(t, os.Remove(filler)) }
	return d, nil
}
