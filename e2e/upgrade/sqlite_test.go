package upgrade

import (
	"path/filepath"
	"testing"
	"time"
)

// TestOneAfterTheOtherOnSQLite: one process at a time may use a file; the versions take turns, there and back.
func TestOneAfterTheOtherOnSQLite(t *testing.T) {
	t.Parallel() // most of it is waiting
	begun := time.Now()
	s := newFixture(t, "sqlite:"+filepath.Join(t.TempDir(), "journal.db"))
	s.alone().end()
	now := s.begin(nameAfter)
	s.processes.wave("NOW", flowing, recovers, recoversAt2, diesLater, dies, diesAgain, senseless)
	s.processes.settle()
	s.receiver.heard(t, each)
	now.shows()
	r, claims := s.beginRun(now)
	now.end()
	old := s.begin(nameBefore)
	s.goBack(old, claims)
	old.end()
	now = s.begin(nameAfter)
	s.endRun(now, r, claims)
	s.receiver.heard(t, 2*each)
	now.shows()
	said := s.agree(claims...)
	s.counted()
	now.end()
	found := s.hold()
	done(t, "one after the other, SQLite", "%d decisions, one answer each; there, back, there again; %s; %.1f s", found.attempts, firstLine(said), time.Since(begun).Seconds())
}
