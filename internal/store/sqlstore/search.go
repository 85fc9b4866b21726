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
	// few are those that the filter finds one by one, unless they are many; nil where it asks for none.
	few []letter
	// subjects begin with one of the prefixes, unless there are many.
	subjects []int64
	// wide tells that too much fits to be sought.
	wide bool
}

// search begins a search: it knows the causes, and neither the subjects nor the few yet.
func (s *snapshot) search(p *deadletter.Query) (q *search, err error) {
	q = &search{snapshot: s, plan: p, causes: map[string]bool{}}
	if !p.Searches {
		if !p.Picks() {
			q.kinds, err = s.kinds(p, false)
		}
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

// searchPicked is a search that knows the few, too: in no order, and one more than fewLetters at most.
func (s *snapshot) searchPicked(p *deadletter.Query) (*search, error) {
	q, err := s.search(p)
	if err != nil || !p.Picks() {
		return q, err
	}
	w := where{conditions: []string{"d.record = c.picked"}}
	oneOf(&w, "state", p.States)
	w.and("record < ? AND at >= ? AND at < ?", p.Before, p.Since, p.Until)
	w.fits(&p.Filter, "")
	table, args := whoArePicked(&p.Filter)
	q.few, err = collect(s, "SELECT "+letterColumns+" FROM "+table+" AS c CROSS JOIN dead_letters d"+w.String()+" LIMIT ?",
		append(append(args, w.args...), fewLetters+1), scanLetter)
	q.wide = q.wide || q.many()
	return q, err
}

// many reports whether the filter finds so many one by one that they are looked for in the list's order.
func (q *search) many() bool { return len(q.few) > fewLetters }

// picked are the letters that the filter finds one by one.
func (q *search) picked(all []letter) ([]letter, error) {
	found := map[int64]bool{}
	err := inLists(recordsOf(all), func(in string, args []any) error {
		var w where
		w.picks(&q.plan.Filter)
		return q.each("SELECT CASE WHEN "+strings.Join(w.conditions, " AND ")+" THEN record ELSE 0 END FROM dead_letters WHERE record IN "+in,
			func(scan scanner) error {
				var record int64
				err := scan(&record)
				found[record] = true
				return err
			}, append(w.args, args...)...)
	})
	return slices.DeleteFunc(all, func(l letter) bool { return !found[l.Record] }), err
}

// behind are those of the few that come behind a place (nil: all), and that the search finds.
func (q *search) behind(after *journal.Place, sort string, limit int) ([]letter, error) {
	found, err := q.matching(slices.DeleteFunc(q.few, func(l letter) bool {
		return after != nil && deadletter.Compare(sort, &l.Place, after) <= 0
	}))
	return ordered(found, sort, limit), err
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
	var more []journal.KeyedDeadLetter
	err := inLists(q.subjects, func(in string, args []any) error {
		some, err := q.keyedLetters("WHERE d.subject IN "+in, args...)
		more = append(more, some...)
		return err
	})
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
	plan := q.plan.Anywhere()
	kinds, err := q.snapshot.kinds(plan, false)
	if err != nil {
		return nil, nil, err
	}
	all, err := q.seek(plan, kinds, q.plan.Filter.Sort, q.plan.After, scanned)
	if err != nil {
		return nil, nil, err
	}
	if found, err = q.matching(all); len(found) <= q.plan.Limit && len(all) == scanned {
		floor = &all[scanned-1].Place
	}
	return found[:min(len(found), q.plan.Limit+1)], floor, err
}

// matching returns the letters that the query finds, and that the filter finds one by one; all where it asks for neither.
func (q *search) matching(all []letter) (found []letter, err error) {
	if q.plan.Picks() && q.many() {
		if all, err = q.picked(all); err != nil {
			return nil, err
		}
	}
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
