package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

func testApart(t *testing.T, s Store) {
	var all []journal.Subject
	for _, tenant := range []string{"<default>", "a", "A", ""} {
		for _, policy := range []string{"tiss-submission", "no-retry", ""} {
			for _, id := range []string{"CLM-8-1", "clm-8-1", "CLM-8-1 ", "CLM-8-10"} {
				all = append(all, journal.Subject{Tenant: tenant, Policy: policy, ID: id})
			}
		}
	}
	ids := make([]journal.Identity, len(all))
	for i, of := range all {
		ids[i] = identity()
		for range i%3 + 1 {
			failure(t, s, of, ids[i])
		}
		must(t, s, []journal.Lookup{{Subject: of}}, func(x *transaction) {
			x.entry(journal.Entry{Kind: journal.RejectionEntry, Subject: of, At: at(0), Body: fmt.Sprintf(`{"i":%d}`, i)})
		})
	}
	for i, of := range all {
		st := story(t, s, of)
		if len(st.Attempts) != i%3+1 || len(st.Entries) != 1 || st.Entries[0].Body != fmt.Sprintf(`{"i":%d}`, i) || st.Entries[0].Subject != of {
			t.Errorf("%q has %d attempts and the entries %v, want %d attempts and its own entry", of, len(st.Attempts), st.Entries, i%3+1)
		}
		if n, err := s.CountAttempts(t.Context(), of); err != nil || n != int64(i%3)+1 {
			t.Errorf("%q has %d attempts (%v), want %d", of, n, err, i%3+1)
		}
		_, h := recall(t, s, journal.Lookup{Subject: of, Identity: ids[(i+1)%len(ids)]})
		if h[0].Attempts != int64(i%3)+1 || h[0].Same != nil {
			t.Errorf("%q has %d attempts and the same %v, want %d and none", of, h[0].Attempts, h[0].Same, i%3+1)
		}
	}
}

// testNames saves names and texts that a careless statement would trip over, and every code point once.
func testNames(t *testing.T, s Store) {
	names := []string{"'", "''", `"`, `""`, "`", "%", "_", `\`, `\'`, "?", "$1", ":a", "@a", "';--", "/*", "\t", "\n", "\r\n", "\u00a0", "\ufeff",
		"e\u0301", "\u00e9", "ﬀ", "İ", "🏥", "👩‍⚕️", "\U0010ffff", "{}", "[1]", "null", "NULL", "0", "1e400", strings.Repeat("x", 512), strings.Repeat("é", 256)}
	for _, name := range names {
		of := journal.Subject{Tenant: name, Policy: name, ID: name}
		failure(t, s, of, identity())
		if st := story(t, s, of); len(st.Attempts) != 1 || st.Subject != of {
			t.Errorf("%q was not found again", name)
		}
		p, err := s.PendingRetries(t.Context(), name, nil, 2)
		if err != nil || len(p) != 1 || p[0].Subject != of {
			t.Errorf("the pending retries of %q are %v (%v)", name, p, err)
		}
	}
	var all strings.Builder
	for c := rune(1); c <= 0x10ffff; c++ {
		if c < 0xd800 || c > 0xdfff {
			all.WriteRune(c)
		}
	}
	of, body := subject("CLM-9-1"), quoted(map[string]string{"a": all.String()})
	must(t, s, []journal.Lookup{{Subject: of}}, func(x *transaction) {
		x.attempt(0, journal.Attempt{At: at(0), Number: 1, Episode: 1, Identity: identity(), Error: all.String(),
			Decision: decision.Decision{MatchedText: all.String(), Catalogue: all.String()}})
		x.entry(journal.Entry{Kind: journal.RejectionEntry, Subject: of, At: at(0), Body: body})
	})
	st := story(t, s, of)
	if d := &st.Attempts[0].Decision; st.Attempts[0].Error != all.String() || d.MatchedText != all.String() || d.Catalogue != all.String() ||
		st.Entries[0].Body != body {
		t.Error("not every code point came back")
	}
}

// quoted is a value as JSON.
func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
