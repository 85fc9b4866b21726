package journal

// Happening is something that was recorded and that others may want to hear of: an attempt, or an entry.
type Happening struct {
	Subject Subject
	// Attempt, or Entry, whichever was recorded; the other is nil.
	Attempt *Attempt
	Entry   *Entry
	// Digest of the record.
	Digest Digest
	// Episode of the subject as it stands then; its Number is 0 where there is none.
	Episode Episode
	// Outcome and Review that the entry is about; nil where it is about neither.
	Outcome *Outcome
	Review  *Review
}

// Told returns the record.
func (h *Happening) Told() Record { return Record{h.Subject, h.Attempt, h.Entry} }

// Publisher makes the outbox's messages of what was recorded. It is pure.
type Publisher func(h *Happening) []Message
