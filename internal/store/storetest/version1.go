package storetest

import (
	_ "embed"
	"regexp"
	"strings"
	"testing"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// version1 is what a worker of the first version wrote, a statement a line: 11 records of 5 claims, among them a
// revision, a dead letter, a reprocessed one, an outcome and a rejection. It is kept as it was, never made anew.
//
//go:embed testdata/version1.sql
var version1 string

// records of version1, each with a link of its own.
const version1Records = 11

var hexBytes = regexp.MustCompile(`\bx'([0-9a-f]*)'`)

// fill runs the statements of version1.
func (d *Database) fill(t *testing.T) {
	t.Helper()
	for statement := range strings.Lines(version1) {
		q := hexBytes.ReplaceAllStringFunc(statement, func(s string) string { return d.Bytes(s[2 : len(s)-1]) })
		if err := d.Exec(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// testFirstVersion opens a journal that is of the first version and has records in it, and goes on with it.
func testFirstVersion(t *testing.T, d Database) {
	testkit.Must(t, d.First(t.Context()))
	d.fill(t)
	if r, err := d.OpenReader(t.Context()); err == nil {
		closed(t, r)
		t.Error("a reader opened tables of the first version, whose columns it does not find")
	} else if wantOneLine(t, err); !strings.Contains(err.Error(), "serve") {
		t.Errorf("the error %q does not say what to do", err)
	}

	s := d.open(t)
	wantRecords(t, s, version1Records)
	wantFirstLetters(t, s)
	old := story(t, s, subject("CLM-001-1"))
	if len(old.Attempts) != 2 || old.Attempts[1].Revision != 1 || old.Attempts[0].Decision.MatchedRule != "TIMEOUT" {
		t.Errorf("the claim's attempts are %+v, want one and its revision", old.Attempts)
	}
	for _, a := range old.Attempts {
		if a.Decision.Catalogue != "" || a.Decision.MatchedText != "" {
			t.Errorf("record %d names the catalogue %q and the text %q", a.Record, a.Decision.Catalogue, a.Decision.MatchedText)
		}
	}
	_, h := recall(t, s, journal.Lookup{Subject: subject("CLM-001-1"), Identity: old.Attempts[0].Identity})
	if h[0].Same == nil || h[0].Same.Revision != 1 || h[0].Attempts != 1 || h[0].Episode.State != journal.Scheduled {
		t.Errorf("the claim is recalled as %+v", h[0])
	}

	must(t, s, []journal.Lookup{{Subject: subject("CLM-001-1")}, {Subject: subject("CLM-005-1")}}, func(x *transaction) {
		for i, of := range []journal.Subject{subject("CLM-001-1"), subject("CLM-005-1")} {
			a := x.fail(i, of, identity())
			a.Decision.Catalogue, a.Decision.MatchedText = "0123456789ab", "Time-out"
			x.Link.Digests[len(x.Link.Digests)-1] = journal.DigestAttempt(of, a)
		}
	})
	failure(t, s, subject("CLM-001-1"), identity()) // by a policy without a catalogue
	wantRecords(t, s, version1Records+3)
	wantLast := func(s journal.Reader) {
		t.Helper()
		all := story(t, s, subject("CLM-001-1")).Attempts
		if a := all[2]; len(all) != 4 || a.Number != 2 || a.Decision.Catalogue != "0123456789ab" || a.Decision.MatchedText != "Time-out" {
			t.Errorf("the claim's attempts are %+v", all)
		}
		wantSame(t, "what was there before", all[:2], old.Attempts)
	}
	wantLast(s)
	closed(t, s)

	r, err := d.OpenReader(t.Context())
	testkit.Must(t, err)
	defer closed(t, r)
	wantRecords(t, r, version1Records+3)
	wantLast(r)
}

// wantFirstLetters wants the dead letters of version1 listed like any other: with their policy, their cause and counted.
func wantFirstLetters(t *testing.T, s Store) {
	t.Helper()
	all, err := walk(t.Context(), s, journal.DeadLetterFilter{State: "all", Policy: "tiss-submission"}, 10)
	if err != nil || len(all) != 2 || all[0].State != journal.DeadLetterOpen || all[1].State != journal.DeadLetterReprocessing {
		t.Fatalf("the dead letters are %+v (%v), want an open one and one that is reprocessed before it", all, err)
	}
	for query, want := range map[string]string{"guia existe": all[1].ID, "unavailable": all[0].ID} {
		found, err := walk(t.Context(), s, journal.DeadLetterFilter{State: "all", Query: query}, 10)
		if err != nil || len(found) != 1 || found[0].ID != want || found[0].Fingerprint == "" {
			t.Errorf("%q finds %+v (%v), want %s", query, found, err, want)
		}
	}
	counts, err := s.DeadLetterCounts(t.Context())
	if err != nil || len(counts) != 2 || counts[0].N != 1 || counts[0].State != journal.DeadLetterOpen || !counts[0].Oldest.Equal(all[0].CreatedAt) ||
		counts[1].N != 1 || counts[1].State != journal.DeadLetterReprocessing || counts[1].Policy != "tiss-submission" {
		t.Errorf("the counts are %+v (%v), want one each", counts, err)
	}
}

// testFirstSettles has a worker of the first version settle dead letters, with the statement it uses, and purge one.
func testFirstSettles(t *testing.T, d Database) {
	closed(t, d.open(t))
	d.fill(t)
	s := d.open(t)
	all, err := walk(t.Context(), s, journal.DeadLetterFilter{State: "all"}, 10)
	if err != nil || len(all) != 2 {
		t.Fatalf("the dead letters are %+v (%v), want two", all, err)
	}
	open, again := all[0].ID, all[1].ID
	closed(t, s)
	for _, statement := range []string{
		"INSERT INTO dead_letters (id, subject, state, episode, record, outcome, reason, team, retry_count, max_retries, process_instance_key, created_at, changed_at)" +
			" SELECT id, subject, 'superseded', episode, record, outcome, reason, team, retry_count, max_retries, process_instance_key, created_at, 1772453400999" +
			" FROM dead_letters WHERE id = '" + open + "' ON CONFLICT (id) DO UPDATE SET state = excluded.state, changed_at = excluded.changed_at",
		"DELETE FROM dead_letters WHERE id = '" + again + "'",
	} {
		if err := d.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	s = d.open(t)
	defer closed(t, s)
	counts, err := s.DeadLetterCounts(t.Context())
	if err != nil || len(counts) != 1 || counts[0].N != 1 || counts[0].State != journal.DeadLetterSuperseded {
		t.Errorf("the counts are %+v (%v), want one that is superseded", counts, err)
	}
	if item, found, err := s.DeadLetter(t.Context(), open); err != nil || !found || item.Fingerprint == "" || item.State != journal.DeadLetterSuperseded {
		t.Errorf("the dead letter is %+v (%v)", item, err)
	}
	wantFigures(t, s, 1<<40, figure("tiss-submission", 0, "dead_letters_open", 0, 1), figure("tiss-submission", 0, "dead_letters_reprocessing", 0, 0))
}

// testFirstGoesOn has a worker of the first version write to the tables of today, as it does during an upgrade.
func testFirstGoesOn(t *testing.T, d Database) {
	closed(t, d.open(t))
	d.fill(t)
	s := d.open(t)
	defer closed(t, s)
	wantRecords(t, s, version1Records)
	wantFirstLetters(t, s)
	failure(t, s, subject("CLM-002-1"), identity())
	wantRecords(t, s, version1Records+1)
}
