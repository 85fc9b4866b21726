package storetest

import (
	"encoding/json"
	"strings"
	"testing"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// testNames saves subjects that differ little, names and texts that could break a careless statement, and every code
// point once.
func testNames(t *testing.T, s Store) {
	names := []string{"'", "''", `"`, `""`, "`", "%", "_", `\`, `\'`, "?", "$1", ":a", "@a", "';--", "/*", "\t", "\n", "\r\n", "\u00a0", "\ufeff",
		"e\u0301", "\u00e9", "ﬀ", "İ", "🏥", "👩‍⚕️", "\U0010ffff", "{}", "[1]", "null", "NULL", "0", "1e400", strings.Repeat("x", 512), strings.Repeat("é", 256)}
	var subjects []journal.Subject
	for _, name := range names {
		subjects = append(subjects, journal.Subject{Tenant: name, Policy: name, ID: name})
	}
	for _, tenant := range []string{"<default>", "a", "A", ""} {
		for _, policy := range []string{"tiss-submission", "no-retry", ""} {
			for _, id := range []string{"CLM-8-1", "clm-8-1", "CLM-8-1 ", "CLM-8-10"} {
				subjects = append(subjects, journal.Subject{Tenant: tenant, Policy: policy, ID: id})
			}
		}
	}
	same := identity()
	for _, of := range subjects {
		if _, h := recall(t, s, journal.Lookup{Subject: of, Identity: same}); h[0].Key != 0 || h[0].Same != nil {
			t.Errorf("%q is known as %+v", of, h[0])
		}
		failure(t, s, of, same)
	}
	for _, of := range subjects {
		if st := story(t, s, of); len(st.Attempts) != 1 || st.Subject != of {
			t.Errorf("%q was not found again", of)
		}
	}
	var all strings.Builder
	for c := rune(1); c <= 0x10ffff; c++ {
		if c < 0xd800 || c > 0xdfff {
			all.WriteRune(c)
		}
	}
	body, err := json.Marshal(map[string]string{"a": all.String()})
	testkit.Must(t, err)
	of := subject("CLM-9-1")
	must(t, s, []journal.Lookup{{Subject: of}}, func(x *transaction) {
		x.entries = append(x.entries, journal.Entry{Kind: journal.RejectionEntry, Subject: of, At: at(0), Body: string(body)})
	})
	if st := story(t, s, of); len(st.Entries) != 1 || string(st.Entries[0].Told()) != string(body) {
		t.Error("not every code point came back")
	}
}
