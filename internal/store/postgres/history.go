package postgres

import "retry-worker/internal/journal"

// readHead reads what takeHead asks for.
func readHead(v *values) journal.Head {
	var h journal.Head
	v.number("link", &h.Link)
	v.number("record", &h.Record)
	v.number("subject", &h.Subject)
	v.instant("at", &h.At)
	v.fixed("hash", h.Hash[:])
	return h
}

// readHistory reads a row of loadHistories into its place.
func readHistory(v *values, lookups []journal.Lookup, histories []journal.History) {
	n := v.integer("n")
	if n < 1 || n > int64(len(lookups)) {
		return
	}
	s, h := &lookups[n-1].Subject, &histories[n-1]
	v.number("key", &h.Key)
	if e, ok := optional(v, episodesTable); ok {
		h.Episode = e.Episode
	}
	h.Last = readAttempt(v, s)
	if h.Last != nil {
		h.Attempts = h.Last.Number
	}
	h.Same = readAttempt(v, s)
	v.truth("answered", &h.SameAnswered)
	v.text("state", (*string)(&h.SameDeadLetter))
	if d, ok := optional(v, deadLettersTable); ok {
		h.DeadLetter = &d.DeadLetter
	}
}

// optional reads the columns of a table that was joined to the left: false where it had no row.
func optional[T any](v *values, of *table[T]) (row T, found bool) {
	if v.null(len(of.names)) {
		return row, false
	}
	row = of.empty()
	of.visit(v, &row)
	return row, true
}

// readAttempt reads an attempt of a subject; nil where there is none.
func readAttempt(v *values, s *journal.Subject) *journal.Attempt {
	k, ok := optional(v, attemptsTable)
	if !ok {
		return nil
	}
	name(k.Attempt, s)
	return k.Attempt
}

// name fills in what an attempt's row leaves to its subject's.
func name(a *journal.Attempt, s *journal.Subject) {
	a.Decision.Policy, a.Decision.SubjectID = s.Policy, s.ID
}
