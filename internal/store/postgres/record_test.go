package postgres

import (
	"crypto/sha256"

	"retry-worker/internal/journal"
	"retry-worker/internal/store/storetest"
	"retry-worker/internal/testkit"
)

// ask is a lookup for one decision on a subject: the same job asks with the same identity.
func ask(id, job string) journal.Lookup {
	sum := sha256.Sum256([]byte(id + "/" + job))
	return journal.Lookup{Subject: testkit.Subject("tiss-submission", id), Identity: journal.Identity(sum[:16])}
}

var (
	record   = storetest.Record
	decide   = storetest.Decide
	wantKind = storetest.WantKind
)
