package postgres

import (
	"context"
	"crypto/sha256"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// ask is a lookup for one decision on a subject: the same job asks with the same identity.
func ask(id, job string) journal.Lookup {
	sum := sha256.Sum256([]byte(id + "/" + job))
	return journal.Lookup{Subject: subject(id), Identity: journal.Identity(sum[:16])}
}

// record decides once on each lookup whose identity is not known yet, and tells which those were.
func record(ctx context.Context, db journal.Store, lookups ...journal.Lookup) (fresh []bool, err error) {
	err = db.Transact(ctx, lookups, func(head journal.Head, histories []journal.History) *journal.Changes {
		var c *journal.Changes
		c, fresh = decide(head, lookups, histories)
		return c
	})
	return fresh, err
}

func decide(head journal.Head, lookups []journal.Lookup, histories []journal.History) (*journal.Changes, []bool) {
	c, fresh := new(journal.Changes), make([]bool, len(lookups))
	now := time.Now().UTC().Truncate(time.Millisecond)
	for i := range lookups {
		if fresh[i] = histories[i].Same == nil; fresh[i] {
			add(c, head, &lookups[i], &histories[i], now)
		}
	}
	if len(c.Attempts) == 0 {
		return nil, fresh
	}
	c.Link.At = now
	c.Link = c.Link.After(head)
	return c, fresh
}

// add adds one decision to what is saved.
func add(c *journal.Changes, head journal.Head, l *journal.Lookup, h *journal.History, now time.Time) {
	e := h.Episode
	if h.Key == 0 {
		h.Key = head.Subject + int64(len(c.Subjects)) + 1
		c.Subjects = append(c.Subjects, journal.KeyedSubject{Key: h.Key, Subject: l.Subject})
		e = journal.Episode{Number: 1, OpenedAt: now, FirstFailure: now}
	}
	e.State, e.NextRetryTime, e.ProcessInstanceKey = journal.Scheduled, now.Add(5*time.Minute), 2251799813685249
	e.Retries, e.Scheduled = e.Retries+1, e.Scheduled+1
	a := &journal.Attempt{
		Record: head.Record + int64(len(c.Attempts)) + 1, Number: h.Attempts + 1, Episode: e.Number, Identity: l.Identity,
		JobKey: 2251799813685250, ElementInstanceKey: 2251799813685251, ProcessInstanceKey: e.ProcessInstanceKey,
		Rule: decision.RNBIL005, Error: "SocketTimeoutException: connect timed out after 30000 ms at gateway", GivenCount: -1,
		AnalysedCount: e.Retries - 1, ReceivedAt: now, Took: 1234 * time.Microsecond,
		Decision: decision.Decision{
			Outcome: decision.Retry, Policy: l.Subject.Policy, SubjectID: l.Subject.ID, ErrorClassification: decision.Transient,
			Reason: "TIMEOUT", MatchedRule: "TIMEOUT", MatchedText: "SocketTimeout", Catalogue: "3f9a1c77d0e2", RetryCount: e.Retries, MaxRetries: 5,
			Backoff:       decision.Backoff{Delay: 5 * time.Minute, Raw: 5*time.Minute + 123, JitterRatio: 0.0123},
			NextRetryTime: e.NextRetryTime, RetryReason: "Transient error, retry 1 of 5", AnalysedAt: now, FirstFailure: e.FirstFailure,
		},
	}
	c.Attempts = append(c.Attempts, journal.KeyedAttempt{Key: h.Key, Attempt: a})
	c.Episodes = append(c.Episodes, journal.KeyedEpisode{Key: h.Key, Episode: e})
	c.Link.Digests = append(c.Link.Digests, journal.DigestAttempt(l.Subject, a))
}
