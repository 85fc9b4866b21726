package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"retry-worker/internal/journal"
)

// loadHistories is the statement that loads the histories of so many subjects: a row for each that is known,
// with the question's number, the record of Same, the subject's key, the dead letter's id, and the rows of the latest
// episode and of the last attempt in its latest revision. Few have a dead letter: it is loaded by itself.
func loadHistories(lookups int) string {
	asked := make([]string, lookups)
	for i := range asked {
		asked[i] = fmt.Sprintf("(%d, ?, ?, ?, ?, ?)", i)
	}
	return `WITH asked (n, id, policy, tenant, identity, dead_letter) AS (VALUES ` + strings.Join(asked, ", ") + `)
SELECT asked.n, s.key,
	CASE WHEN a.identity = asked.identity THEN a.record
	     WHEN asked.identity IS NOT NULL THEN (SELECT record FROM attempts WHERE subject = s.key AND identity = asked.identity
	          ORDER BY number DESC, revision DESC LIMIT 1) END,
	d.id, ` + episodes.names("e.") + ", " + attempts.names("a.") + `
FROM asked
CROSS JOIN subjects s ON s.id = asked.id AND s.policy = asked.policy AND s.tenant = asked.tenant
LEFT JOIN episodes e ON e.subject = s.key AND e.number = (SELECT max(number) FROM episodes WHERE subject = s.key)
LEFT JOIN attempts a ON a.record = (SELECT record FROM attempts WHERE subject = s.key ORDER BY number DESC, revision DESC LIMIT 1)
LEFT JOIN dead_letters d ON d.id = CASE asked.dead_letter WHEN '' THEN e.dead_letter ELSE asked.dead_letter END AND d.subject = s.key`
}

// asOne is how many subjects one statement loads; what is asked for in vain costs little.
const asOne = 16

var (
	loadOne     = loadHistories(1)
	loadSome    = loadHistories(asOne)
	loadAttempt = "SELECT " + attempts.names("") + " FROM attempts WHERE record = ?"
	loadLetter  = "SELECT " + deadLetters.names("") + " FROM dead_letters WHERE id = ?"
)

const (
	// loadAnswered looks at all revisions of an attempt: a late answer to the first may be taken when another
	// worker has made a second.
	loadAnswered = `SELECT 1 FROM attempts a WHERE a.subject = ? AND a.number = ?
		AND a.record <= (SELECT last FROM answered WHERE first <= a.record ORDER BY first DESC LIMIT 1) LIMIT 1`
	loadDeadLetterState = "SELECT state FROM dead_letters WHERE id = ? AND subject = ?"
)

// recall loads the history of each lookup.
func (c *connection) recall(lookups []journal.Lookup) ([]journal.History, error) {
	histories := make([]journal.History, len(lookups))
	at := 0
	for chunk := range slices.Chunk(lookups, asOne) {
		if err := c.recallSome(chunk, histories[at:at+len(chunk)]); err != nil {
			return nil, err
		}
		at += len(chunk)
	}
	for i := range lookups {
		if lookups[i].Run == "" {
			continue
		}
		if err := c.recallRun(&histories[i], lookups[i].Run); err != nil {
			return nil, err
		}
	}
	return histories, nil
}

// recallRun loads the bulk run that is asked for.
func (c *connection) recallRun(h *journal.History, id string) error {
	values, err := c.row(loadRun, id)
	if err != nil || values == nil {
		return err
	}
	run, err := readRun(values)
	h.Run = &run
	return err
}

func (c *connection) recallSome(lookups []journal.Lookup, histories []journal.History) error {
	query, size := loadSome, asOne
	if len(lookups) == 1 {
		query, size = loadOne, 1
	}
	s, err := c.prepared(query)
	if err != nil {
		return err
	}
	s.ask(lookups, size)
	same, letters := make([]int64, len(lookups)), make([]driver.Value, len(lookups))
	err = s.query(context.Background(), func(values []driver.Value) error {
		n, err := as[int64](values[0])
		if err != nil {
			return err
		}
		if values[2] != nil {
			if err := into(&same[n], values[2]); err != nil {
				return err
			}
		}
		letters[n] = values[3]
		return readHistory(&histories[n], lookups[n].Subject, values)
	})
	if err != nil {
		return err
	}
	for i := range histories {
		if letters[i] != nil {
			if err := c.recallLetter(&histories[i], letters[i]); err != nil {
				return err
			}
		}
		if same[i] != 0 {
			if err := c.recallSame(&histories[i], lookups[i].Subject, same[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask sets the arguments of loadHistories, for size lookups where there may be fewer.
func (s *statement) ask(lookups []journal.Lookup, size int) {
	s.with()
	for i := range lookups {
		l := &lookups[i]
		s.add(l.Subject.ID)
		s.add(l.Subject.Policy)
		s.add(l.Subject.Tenant)
		if l.Identity == (journal.Identity{}) {
			s.add(nil)
		} else {
			s.add(l.Identity[:])
		}
		s.add(l.DeadLetter)
	}
	for range 5 * (size - len(lookups)) {
		s.add(nil)
	}
}

// readHistory reads a row of loadHistories.
func readHistory(h *journal.History, s journal.Subject, values []driver.Value) error {
	if err := into(&h.Key, values[1]); err != nil {
		return err
	}
	values = values[4:]
	e, a := values[:len(episodes.columns)], values[len(episodes.columns):]
	if e[0] != nil {
		row := episodeRow{}
		if err := episodes.read(&row, e); err != nil {
			return err
		}
		h.Episode = row.Episode
	}
	if a[0] != nil {
		last, err := readAttempt(s, a)
		if err != nil {
			return err
		}
		h.Last, h.Attempts = last, last.Number
	}
	return nil
}

// recallLetter loads the dead letter that was found.
func (c *connection) recallLetter(h *journal.History, id driver.Value) error {
	values, err := c.row(loadLetter, id)
	if err != nil || values == nil {
		return err
	}
	row := deadLetterRow{}
	err = deadLetters.read(&row, values)
	h.DeadLetter = &row.DeadLetter
	return err
}

func readAttempt(s journal.Subject, values []driver.Value) (*journal.Attempt, error) {
	row := attemptRow{Attempt: &journal.Attempt{}}
	err := attempts.read(&row, values)
	row.Attempt.Decision.Policy, row.Attempt.Decision.SubjectID = s.Policy, s.ID
	return row.Attempt, err
}

// recallSame loads what is known of the attempt that the identity was found at.
func (c *connection) recallSame(h *journal.History, s journal.Subject, record int64) error {
	h.Same = h.Last
	if h.Last.Record != record {
		row, err := c.row(loadAttempt, record)
		if err != nil {
			return err
		}
		if h.Same, err = readAttempt(s, row); err != nil {
			return err
		}
	}
	row, err := c.row(loadAnswered, h.Key, h.Same.Number)
	if err != nil {
		return err
	}
	h.SameAnswered = row != nil
	return c.recallState(h)
}

func (c *connection) recallState(h *journal.History) error {
	switch id := h.Same.DeadLetter; {
	case id == "":
		return nil
	case h.DeadLetter != nil && h.DeadLetter.ID == id:
		h.SameDeadLetter = h.DeadLetter.State
		return nil
	default:
		row, err := c.row(loadDeadLetterState, id, h.Key)
		if err != nil || row == nil {
			return err
		}
		state, err := as[string](row[0])
		h.SameDeadLetter = journal.DeadLetterState(state)
		return err
	}
}
