package journal

// Happening is a record that was written and that others may want to hear of.
type Happening struct {
	Record
	// Digest of the record.
	Digest Digest
	// Episode of the subject as it stands then; its Number is 0 where there is none.
	Episode Episode
	// Outcome, Review, or claim given up at its gate that the entry is about; nil where it is about another.
	Outcome *Outcome
	Review  *Review
	GivenUp *GateBody
}

// Publisher makes the outbox's messages of what was recorded. It is pure.
type Publisher func(h *Happening) []Message
