package chaos_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
)

// fullFor is how long the disk stays full.
const fullFor = 3 * time.Second

// A full disk: jobs go back as they came, the reason is told, and the worker goes on by itself when there is room. The limit
// of a file's size stands for the disk.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	path := filepath.Join(folder(t), "journal.db")
	s := newStub(t, "FULL")
	p := serve(t, settings{name: "worker", gateway: s.Addr(), url: "sqlite:" + path})
	end := s.feed()
	s.answered(20)
	// No more than it has: unlike a disk's, the room up to a limit cannot be asked for, so that one page may still be written,
	// which reopens the journal, where a batch may not.
	info, err := os.Stat(path + "-wal")
	testkit.Must(t, err)
	testkit.Must(t, limitFiles(p.PID(), uint64(info.Size())))
	reason := p.unready()
	noticed := s.Now()
	if !strings.Contains(reason, "disk") {
		t.Errorf("/readyz says %q, want the disk in it", reason)
	}
	p.logged("the journal cannot be written")
	s.expectHandedBack()
	pass(t, fullFor)
	if !strings.Contains(p.out.Text(), "the journal can be written again") { // there may be room for a while, in a file that begins anew
		s.expectNoPolls(noticed)
	}
	s.expectHistory("sqlite:" + path)
	testkit.Must(t, limitFiles(p.PID(), math.MaxUint64))
	p.ready()
	s.answered(s.Counts().Settled + 20)
	end()
	s.settle()
	p.stop()
	a := look(t, "sqlite:"+path)
	found, returned := s.holdAgainst(a), s.handedBack()
	a.oneAttemptPerCount(false)
	report(t, "SQLite, disk full", "full for %.0f s under load; %d jobs, %d attempts, one answer each, %d given back with their retries; %.1f s; /readyz: %s",
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
