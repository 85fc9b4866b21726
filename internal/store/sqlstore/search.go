package sqlstore

import (
	"slices"
	"strings"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// search finds the dead letters that a filter lets through.
type search struct {
	*snapshot
	plan *deadletter.Query
	// causes are those whose pattern or reason holds all the words, kinds theirs; without a query all kinds.
	causes map[string]bool
	kinds  []kind
	// subjects begin with one of the prefixes, unless there are many.
	subjects []int64
	// wide tells that too much fits to be sought.
	wide bool
}

// search begins a search: it knows the causes, and not the subjects yet.
func (s *snapshot) search(p *deadletter.Query) (q *search, err error) {
	q = &search{snapshot: s, plan: p, causes: map[string]bool{}}
	if !p.Searches {
		q.kinds, err = s.kinds(p, false)
		return q, err
	}
	if len(p.Words) == 0 {
		return q, nil
	}
	err = q.each("SELECT id, reason, pattern FROM fingerprints", func(scan scanner) error {
		var f journal.Fingerprint
		err := scan(&f.ID, &f.Reason, &f.Pattern)
		if p.Finds(&f) {
			q.causes[f.ID] = true
		}
		return err
	})
	if err != nil || len(q.causes) == 0 {
		return q, err
	}
	kinds, err := s.kinds(p, true)
	q.kinds = slices.DeleteFunc(kinds, func(k kind) bool { return !q.causes[k.Fingerprint] })
	q.wide = len(q.kinds) > fewKeys
	return q, err
}

func (q *search) findSubjects() error {
	for _, prefix := range q.plan.Prefixes {
		var w where
		w.and("id >= ?", prefix)
		if end, ok := deadletter.AfterPrefix(prefix); ok {
			w.and("id < ?", end)
		}
		err := q.each("SELECT key FROM subjects"+w.String()+" LIMIT ?", func(scan scanner) error {
			var key int64
			err := scan(&key)
			q.subjects = append(q.subjects, key)
			return err
		}, append(w.args, fewSubjects+1)...)
		if err != nil {
			return err
		}
	}
	q.wide = q.wide || len(q.subjects) > fewSubjects
	return nil
}

// direct adds what is found by its subject or its id.
func (q *search) direct(found []letter) ([]letter, error) {
	more, err := q.lettersBy("d.subject", q.subjects)
	if err != nil {
		return nil, err
	}
	if q.plan.ID != "" {
		some, err := q.keyedLetters("WHERE d.id = ?", q.plan.ID)
		if err != nil {
			return nil, err
		}
		more = append(more, some...)
	}
	for i := range more {
		if d := &more[i]; q.plan.Passes(&d.DeadLetter, d.Subject.Policy) {
			found = append(found, letter{Place: d.DeadLetter.Place(), fingerprint: d.DeadLetter.Fingerprint})
		}
	}
	return ordered(found, q.plan.Filter.Sort, q.plan.Limit+1), nil
}

// lookThrough looks at dead letters in the list's order, at most scanned of them.
func (q *search) lookThrough() (found []letter, floor *journal.Place, err error) {
	kinds, err := q.snapshot.kinds(q.plan, false)
	if err != nil {
		return nil, nil, err
	}
	all, err := q.seek(q.plan, kinds, q.plan.Filter.Sort, q.plan.After, scanned)
	if err != nil {
		return nil, nil, err
	}
	if found, err = q.matching(all); len(found) <= q.plan.Limit && len(all) == scanned {
		floor = &all[scanned-1].Place
	}
	return found[:min(len(found), q.plan.Limit+1)], floor, err
}

// matching returns the letters that the query finds; all where there is none.
func (q *search) matching(all []letter) (found []letter, err error) {
	if !q.plan.Searches {
		return all, nil
	}
	hit := map[int64]bool{}
	err = inLists(recordsOf(all), func(in string, args []any) error {
		return q.each("SELECT d.record, d.id, s.id FROM dead_letters d JOIN subjects s ON s.key = d.subject WHERE "+
			"d.record IN "+in, func(scan scanner) error {
			var record int64
			var id, subject string
			err := scan(&record, &id, &subject)
			hit[record] = id == q.plan.ID ||
				slices.ContainsFunc(q.plan.Prefixes, func(prefix string) bool { return strings.HasPrefix(subject, prefix) })
			return err
		}, args...)
	})
	for _, l := range all {
		if hit[l.Record] || q.causes[l.fingerprint] {
			found = append(found, l)
		}
	}
	return found, err
}
