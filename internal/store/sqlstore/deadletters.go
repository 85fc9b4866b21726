package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// urgency is the class of a deadline, by the bounds of Query.Near.
const urgency = "CASE WHEN d.deadline <= ? THEN 0 WHEN d.deadline <= ? THEN 1 WHEN d.deadline <= ? THEN 2 ELSE 3 END"

// order restricts w to dead letters d after the query's place, and returns the columns to sort by with their
// parameters. Every order has an index for each state, except the one by urgency, which moves with the clock.
func order(w *where, p *deadletter.Query) (by string, args []any) {
	var after journal.Place
	if p.After != nil {
		after = *p.After
	}
	place := []any{after.Record}
	switch p.Sort {
	case deadletter.Newest:
		if p.After != nil {
			w.and("d.record < ?", place...)
		}
		return "d.record DESC", nil
	case deadletter.ByAge:
		by = "d.record"
	case deadletter.ByAmount:
		by, place = "-d.cents, d.record", []any{-after.Cents, after.Record}
	case deadletter.ByDeadline:
		by, place = "d.deadline, -d.cents, d.record", []any{after.Deadline, -after.Cents, after.Record}
	case deadletter.Urgent:
		by, place = urgency+", -d.cents * d.chance, d.record", []any{p.Class(&after), -after.Cents * after.Chance, after.Record}
		for _, at := range p.Near() {
			args = append(args, at)
		}
	}
	if p.After != nil {
		w.and("("+by+") > (?"+strings.Repeat(", ?", len(place)-1)+")", append(slices.Clone(args), place...)...)
	}
	return by, args
}

// finds returns the conditions of a query on dead letters d, without the one on their state.
func (d *Dialect) finds(p *deadletter.Query) (w where) {
	f := &p.Filter
	w.is("d.policy", f.Policy)
	w.is("d.team", string(f.Team))
	w.is("d.reason", string(f.Reason))
	w.is("d.fingerprint", f.Fingerprint)
	if f.IDs != "" {
		oneOf(&w, "d.id", strings.Split(f.IDs, ","))
	}
	if f.Context != "" {
		w.and(d.brings(f.Context))
	}
	if f.Assignee == journal.Nobody {
		w.and("d.assignee = ''")
	} else {
		w.is("d.assignee", f.Assignee)
	}
	w.at("d.follow_up <> 0 AND d.follow_up < ?", f.FollowUp)
	w.at("d.at >= ?", f.Since)
	w.at("d.at < ?", f.Until)
	if !f.DueUntil.IsZero() {
		w.and("d.deadline >= ? AND d.deadline < ?", journal.CeilMilli(f.DueSince), journal.CeilMilli(f.DueUntil))
	}
	if f.After != 0 {
		w.and("d.record > ?", f.After)
	}
	if p.Search != "" {
		d.search(&w, p)
	}
	return w
}

// brings returns the condition that a dead letter d has a variable=value in its context: its JSON contains part, which
// no text in the JSON can contain.
func (d *Dialect) brings(context string) (condition string, part any) {
	variable, value, _ := strings.Cut(context, "=")
	object, _ := json.Marshal(decision.ContextValue{Variable: variable, Value: value})
	text, _, _ := strings.Cut(string(object), `,"type":`)
	return d.Contains + "(CAST(d.body AS TEXT), ?) > 0", text
}

// search adds the condition that a query's search text finds a dead letter d.
func (d *Dialect) search(w *where, p *deadletter.Query) {
	var one, words where
	for _, word := range p.Words {
		words.and("("+d.Contains+"(pattern, ?) > 0 OR "+d.Contains+"(reason, ?) > 0 OR "+d.Contains+"(reason, ?) > 0)",
			word, word, strings.ToUpper(word))
	}
	if len(p.Words) > 0 {
		one.and("d.fingerprint IN (SELECT id FROM fingerprints"+words.String()+")", words.args...)
	}
	one.and("d.record IN (SELECT record FROM dead_letters WHERE id = ?)", strings.ToLower(p.Search))
	const last = "\U0010FFFF" // sorts behind every character of an id
	upper := strings.ToUpper(p.Search)
	one.and("EXISTS (SELECT 1 FROM subjects s WHERE s.key = d.subject AND (s.id BETWEEN ? AND ? OR s.id BETWEEN ? AND ?))",
		p.Search, p.Search+last, upper, upper+last)
	w.and("("+strings.Join(one.conditions, " OR ")+")", one.args...)
}

// letters returns the first dead letters d that w selects, in the order by with its parameters, then sorted by record.
func (t *tx) letters(w where, limit int, by string, args ...any) []deadletter.Item {
	query := "SELECT " + letterColumns + ", r.body FROM dead_letters d JOIN subjects s ON s.key = d.subject " +
		"LEFT JOIN records r ON r.record = d.record AND r.kind = 'attempt' WHERE d.record IN (SELECT d.record FROM dead_letters d" +
		w.String() + " ORDER BY " + by + " LIMIT ?) ORDER BY d.record"
	args = append(append(w.args, args...), max(limit, 0))
	return collect(t, query, args, func(scan scanner, i *deadletter.Item) {
		var attempt *string // nil if purged
		if scan(append(ofLetter(&i.DeadLetter), &attempt)...); attempt == nil {
			return
		}
		a := t.attempt(&journal.Entry{Record: i.Record, Kind: journal.AttemptEntry, Subject: i.Subject, Body: *attempt})
		if a != nil {
			i.Error, i.Classification, i.MatchedRule = a.Error, a.Decision.ErrorClassification, a.Decision.MatchedRule
		}
	})
}

const (
	letterColumns = "s.key, s.tenant, s.policy, s.id, d.record, d.id, d.state, d.team, d.reason, d.fingerprint, d.at, " +
		"d.chance, d.deadline, d.cents, d.body"
	// maybeLetter are the same where there may be no dead letter.
	maybeLetter = `s.key, s.tenant, s.policy, s.id,
		coalesce(d.record, 0), coalesce(d.id, ''), coalesce(d.state, ''), coalesce(d.team, ''), coalesce(d.reason, ''),
		coalesce(d.fingerprint, ''), coalesce(d.at, 0), coalesce(d.chance, 0), coalesce(d.deadline, 0),
		coalesce(d.cents, 0), coalesce(d.body, '{}')`
)

// ofLetter returns where to scan letterColumns.
func ofLetter(d *journal.DeadLetter) []any {
	of := &d.Subject
	return []any{&d.Key, &of.Tenant, &of.Policy, &of.ID, &d.Record, &d.ID, &d.State, &d.Team, &d.Reason,
		&d.Fingerprint, milli{&d.CreatedAt}, &d.Chance, due{&d.Deadline}, &d.Cents, asJSON{d}}
}

// due scans a dead letter's deadline.
type due struct{ at *time.Time }

// Scan implements sql.Scanner.
func (d due) Scan(from any) error {
	if from == int64(journal.NoDeadline) {
		return nil
	}
	err := milli(d).Scan(from)
	if err == nil && d.at.IsZero() {
		*d.at = time.UnixMilli(0).UTC()
	}
	return err
}

// DeadLetterPage implements deadletter.Reader.
func (r *Reader) DeadLetterPage(
	ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int,
) (all []deadletter.Item, next string, err error) {
	p, err := deadletter.NewQuery(f, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	all, err = reading(ctx, r, "list dead letters", func(t *tx) (all []deadletter.Item) {
		for _, state := range p.States {
			w := t.finds(p)
			w.and("d.state = ?", string(state))
			by, args := order(&w, p)
			all = append(all, t.letters(w, p.Limit+1, by, args...)...)
		}
		return all
	})
	slices.SortFunc(all, func(a, b deadletter.Item) int {
		x, y := a.DeadLetter.Place(), b.DeadLetter.Place()
		return p.Compare(&x, &y)
	})
	if err == nil && len(all) > p.Limit {
		all = all[:p.Limit]
		next = p.Cursor(all[p.Limit-1].DeadLetter.Place())
	}
	return all, next, err
}

// DeadLetter implements deadletter.Reader.
func (r *Reader) DeadLetter(ctx context.Context, id string) (item deadletter.Item, found bool, err error) {
	return first(reading(ctx, r, "read a dead letter", func(t *tx) []deadletter.Item {
		return t.letters(where{[]string{"d.id = ?"}, []any{id}}, 1, "d.record")
	}))
}

// DeadLettersOf implements deadletter.Reader.
func (r *Reader) DeadLettersOf(ctx context.Context, records []int64) ([]deadletter.Item, error) {
	if len(records) == 0 {
		return nil, nil
	}
	var w where
	oneOf(&w, "d.record", records)
	return reading(ctx, r, "read dead letters", func(t *tx) []deadletter.Item {
		return t.letters(w, len(records), "d.record")
	})
}

// DeadLetterCounts implements deadletter.Reader. It counts in the order of an index, which spares the database a sort.
func (r *Reader) DeadLetterCounts(ctx context.Context, f journal.DeadLetterFilter) ([]deadletter.Count, error) {
	const of = "d.state, d.fingerprint, d.policy, d.team, d.reason, d.assignee"
	p, _ := deadletter.NewQuery(f, "", 1) // only a cursor can fail
	w := r.finds(p)
	oneOf(&w, "d.state", p.States)
	query := "SELECT " + of + `, count(*), CAST(sum(d.cents) AS BIGINT), min(d.at), max(d.at), max(d.record)
		FROM dead_letters d` + w.String() + " GROUP BY " + of + " ORDER BY " + of
	all, err := list(ctx, r, "count dead letters", query, w.args, func(scan scanner, c *deadletter.Count) {
		scan(&c.State, &c.Fingerprint, &c.Policy, &c.Team, &c.Reason, &c.Assignee, &c.N, &c.Cents, milli{&c.Oldest},
			milli{&c.Newest}, &c.Last)
	})
	slices.SortStableFunc(all, func(a, b deadletter.Count) int {
		return cmp.Or(cmp.Compare(a.Fingerprint, b.Fingerprint), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.State, b.State))
	})
	return all, err
}
