package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/journal"
)

const (
	// fewSubjects may begin with what is searched for, and fewKeys be the kinds of the causes with its words, for their dead
	// letters to be sought; where more do, the dead letters are looked through from the newest on, scanned for a page.
	fewSubjects = 2000
	fewKeys     = 200
	scanned     = 4000
)

// letter is a dead letter that was found.
type letter struct {
	record, subject int64
	fingerprint     string
}

// kind is what dead letters are counted and sought by.
type kind struct {
	journal.CauseCount
	caused bool // sought by its cause
}

// kinds are those that there are dead letters of and the filter lets through, those with the most first.
func (s *snapshot) kinds(p *journal.DeadLetterPlan, byCause bool) (all []kind, err error) {
	cause := "''"
	if byCause || p.Filter.Fingerprint != "" {
		cause, byCause = "fingerprint", true
	}
	query, args := "SELECT "+cause+" AS cause, policy, state, team, reason, CAST(sum(n) AS BIGINT) AS total FROM dead_letter_counts WHERE n > 0", []any{}
	for _, of := range [][2]string{{"policy", p.Filter.Policy}, {"team", string(p.Filter.Team)}, {"reason", string(p.Filter.Reason)},
		{"fingerprint", p.Filter.Fingerprint}} {
		if of[1] != "" {
			query, args = query+" AND "+of[0]+" = ?", append(args, of[1])
		}
	}
	err = s.each(query+" GROUP BY 1, policy, state, team, reason ORDER BY total DESC, 1, policy, state, team, reason", func(scan func(to ...any) error) error {
		k := kind{caused: byCause}
		err := scan(&k.Fingerprint, &k.Policy, &k.State, &k.Team, &k.Reason, &k.N)
		if slices.Contains(p.States, k.State) {
			all = append(all, k)
		}
		return err
	}, args...)
	return all, err
}

// seeks are how many kinds are sought in one statement.
const seeks = 32

// seek finds dead letters of the kinds with a record between two, both excluded: at most limit of each, in the order of
// their records, descending or ascending.
func (s *snapshot) seek(p *journal.DeadLetterPlan, kinds []kind, above, before int64, limit int, order string) (all []letter, err error) {
	for chunk := range slices.Chunk(kinds, seeks) {
		var query strings.Builder
		var args []any
		for i, k := range chunk {
			if i > 0 {
				query.WriteString(" UNION ALL ")
			}
			query.WriteString("SELECT * FROM (SELECT record, subject, fingerprint FROM dead_letters WHERE state = ? AND policy = ? AND team = ? AND reason = ?")
			args = append(args, string(k.State), k.Policy, string(k.Team), string(k.Reason))
			if k.caused {
				query.WriteString(" AND fingerprint = ?")
				args = append(args, k.Fingerprint)
			}
			if query.WriteString(" AND record > ? AND record < ?"); p.Aged() {
				query.WriteString(" AND at >= ? AND at < ?")
			}
			if args = append(args, above, before); p.Aged() {
				args = append(args, p.Since, p.Until)
			}
			query.WriteString(" ORDER BY record " + order + " LIMIT ?) AS k")
			args = append(args, limit)
		}
		err = s.each(query.String(), func(scan func(to ...any) error) error {
			var l letter
			err := scan(&l.record, &l.subject, &l.fingerprint)
			all = append(all, l)
			return err
		}, args...)
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b letter) int {
		if order == "DESC" {
			a, b = b, a
		}
		return cmp.Compare(a.record, b.record)
	})
	all = slices.CompactFunc(all, func(a, b letter) bool { return a.record == b.record })
	return all[:min(len(all), limit)], nil
}

// DeadLetterPage implements journal.DeadLetterReader. It seeks each kind of dead letters that the filter lets through in an
// index, from the newest on, and merges what it finds.
func (r *Reader) DeadLetterPage(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) (all []journal.DeadLetterItem, next string, err error) {
	p, err := f.Plan(cursor, limit)
	if err != nil {
		return nil, "", err
	}
	err = r.read(ctx, "list dead letters", func(s *snapshot) error {
		found, floor, err := s.page(p)
		if err != nil {
			return err
		}
		next = ""
		switch {
		case len(found) > p.Limit:
			found = found[:p.Limit]
			next = p.Cursor(found[p.Limit-1].record)
		case floor > 0: // further ones were not looked at
			next = p.Cursor(floor)
		}
		all, err = s.letterItems(found)
		return err
	})
	return all, next, err
}

// page finds the dead letters of a page, and one more. floor is the last record that was looked at, where not all could be.
func (s *snapshot) page(p *journal.DeadLetterPlan) (found []letter, floor int64, err error) {
	if !p.Searches {
		kinds, err := s.kinds(p, false)
		if err == nil {
			found, err = s.seek(p, kinds, math.MinInt64, p.Before, p.Limit+1, "DESC")
		}
		return found, 0, err
	}
	q, err := s.search(p)
	if err != nil {
		return nil, 0, err
	}
	if q.wide {
		return q.lookThrough()
	}
	found, err = s.seek(p, q.kinds, math.MinInt64, p.Before, p.Limit+1, "DESC")
	if err == nil {
		found, err = q.direct(found)
	}
	return found, 0, err
}

// search is a query's.
type search struct {
	*snapshot
	plan *journal.DeadLetterPlan
	// causes are those whose pattern or reason holds all the words, kinds theirs.
	causes map[string]bool
	kinds  []kind
	// subjects begin with one of the prefixes, unless there are many.
	subjects []int64
	// wide tells that too much fits to be sought.
	wide bool
}

func (s *snapshot) search(p *journal.DeadLetterPlan) (*search, error) {
	q := &search{snapshot: s, plan: p, causes: map[string]bool{}}
	err := q.findCauses()
	if err == nil {
		err = q.findSubjects()
	}
	return q, err
}

func (q *search) findCauses() error {
	if len(q.plan.Words) == 0 {
		return nil
	}
	err := q.each("SELECT id, reason, pattern FROM fingerprints", func(scan func(to ...any) error) error {
		var f journal.Fingerprint
		err := scan(&f.ID, &f.Reason, &f.Pattern)
		if q.plan.Finds(&f) {
			q.causes[f.ID] = true
		}
		return err
	})
	if err != nil || len(q.causes) == 0 {
		return err
	}
	kinds, err := q.snapshot.kinds(q.plan, true)
	q.kinds = slices.DeleteFunc(kinds, func(k kind) bool { return !q.causes[k.Fingerprint] })
	q.wide = len(q.kinds) > fewKeys
	return err
}

func (q *search) findSubjects() error {
	for _, prefix := range q.plan.Prefixes {
		query, args := "SELECT key FROM subjects WHERE id >= ?", []any{prefix}
		if end, ok := journal.AfterPrefix(prefix); ok {
			query, args = query+" AND id < ?", append(args, end)
		}
		err := q.each(query+" LIMIT ?", func(scan func(to ...any) error) error {
			var key int64
			err := scan(&key)
			q.subjects = append(q.subjects, key)
			return err
		}, append(args, fewSubjects+1)...)
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
	for chunk := range slices.Chunk(q.subjects, 256) {
		in, args := list(chunk)
		some, err := q.keyedLetters("WHERE d.subject IN "+in, args...)
		if err != nil {
			return nil, err
		}
		more = append(more, some...)
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
			found = append(found, letter{d.DeadLetter.Record, d.Key, d.DeadLetter.Fingerprint})
		}
	}
	slices.SortFunc(found, func(a, b letter) int { return cmp.Compare(b.record, a.record) })
	found = slices.CompactFunc(found, func(a, b letter) bool { return a.record == b.record })
	return found[:min(len(found), q.plan.Limit+1)], nil
}

// lookThrough looks at dead letters from the newest on, at most scanned of them.
func (q *search) lookThrough() (found []letter, floor int64, err error) {
	kinds, err := q.snapshot.kinds(q.plan, false)
	if err != nil {
		return nil, 0, err
	}
	all, err := q.seek(q.plan, kinds, math.MinInt64, q.plan.Before, scanned, "DESC")
	if err != nil {
		return nil, 0, err
	}
	if found, err = q.those(all); len(found) <= q.plan.Limit && len(all) == scanned {
		floor = all[scanned-1].record
	}
	return found[:min(len(found), q.plan.Limit+1)], floor, err
}

// those are the letters that the query finds.
func (q *search) those(all []letter) (found []letter, err error) {
	for chunk := range slices.Chunk(all, 256) {
		keys := make([]int64, len(chunk))
		for i := range chunk {
			keys[i] = chunk[i].record
		}
		in, args := list(keys)
		hit := map[int64]bool{}
		err := q.each("SELECT d.record, d.id, s.id FROM dead_letters d JOIN subjects s ON s.key = d.subject WHERE d.record IN "+in, func(scan func(to ...any) error) error {
			var record int64
			var id, subject string
			err := scan(&record, &id, &subject)
			hit[record] = id == q.plan.ID || slices.ContainsFunc(q.plan.Prefixes, func(prefix string) bool { return strings.HasPrefix(subject, prefix) })
			return err
		}, args...)
		if err != nil {
			return nil, err
		}
		for _, l := range chunk {
			if hit[l.record] || q.causes[l.fingerprint] {
				found = append(found, l)
			}
		}
	}
	return found, nil
}

// list is a list of parameters, of which there are few lengths, and their values.
func list(values []int64) (string, []any) {
	size := 1
	for size < len(values) {
		size *= 4
	}
	args := make([]any, size)
	for i := range args {
		if args[i] = int64(-1); i < len(values) {
			args[i] = values[i]
		}
	}
	return "(" + strings.Repeat("?, ", size-1) + "?)", args
}

// keyedLetters reads dead letters d.
func (s *snapshot) keyedLetters(clause string, args ...any) (all []journal.KeyedDeadLetter, err error) {
	err = s.each("SELECT d.subject, s.tenant, s.policy, s.id, d.seen, d.body FROM dead_letters d JOIN subjects s ON s.key = d.subject "+clause,
		func(scan func(to ...any) error) error {
			var k journal.KeyedDeadLetter
			var seen int64
			var text string
			if err := scan(&k.Key, &k.Subject.Tenant, &k.Subject.Policy, &k.Subject.ID, &seen, &text); err != nil {
				return err
			}
			d, err := readLetter(text, seen)
			k.DeadLetter = *d
			all = append(all, k)
			return err
		}, args...)
	return all, err
}

// letterItems are dead letters as people see them, in the order that they were found in.
func (s *snapshot) letterItems(found []letter) ([]journal.DeadLetterItem, error) {
	items := map[int64]journal.DeadLetterItem{}
	for chunk := range slices.Chunk(found, 256) {
		keys := make([]int64, len(chunk))
		for i := range chunk {
			keys[i] = chunk[i].record
		}
		in, args := list(keys)
		letters, err := s.keyedLetters("WHERE d.record IN "+in, args...)
		if err != nil {
			return nil, err
		}
		for i := range letters {
			items[letters[i].DeadLetter.Record] = journal.DeadLetterItem{DeadLetter: letters[i].DeadLetter, Subject: letters[i].Subject}
		}
		err = s.each("SELECT record, body FROM records WHERE kind = 'attempt' AND record IN "+in, func(scan func(to ...any) error) error {
			var record int64
			var text string
			var a journal.Attempt
			if err := scan(&record, &text); err != nil {
				return err
			}
			err := json.Unmarshal([]byte(text), &a)
			i := items[record]
			i.Error, i.Classification, i.MatchedRule = a.Error, a.Decision.ErrorClassification, a.Decision.MatchedRule
			items[record] = i
			return err
		}, args...)
		if err != nil {
			return nil, err
		}
	}
	all := make([]journal.DeadLetterItem, 0, len(found))
	for i := range found {
		if item, there := items[found[i].record]; there {
			all = append(all, item)
		}
	}
	return all, nil
}

// DeadLetter implements journal.DeadLetterReader.
func (r *Reader) DeadLetter(ctx context.Context, id string) (item journal.DeadLetterItem, found bool, err error) {
	err = r.read(ctx, "read a dead letter", func(s *snapshot) error {
		var l letter
		if found, err = s.one("SELECT record FROM dead_letters WHERE id = ?", []any{id}, &l.record); err != nil || !found {
			return err
		}
		all, err := s.letterItems([]letter{l})
		if found = len(all) > 0; found {
			item = all[0]
		}
		return err
	})
	return item, found && err == nil, err
}

// DeadLetterCounts implements journal.DeadLetterReader.
func (r *Reader) DeadLetterCounts(ctx context.Context) (all []journal.DeadLetterCount, err error) {
	err = r.read(ctx, "count the dead letters", func(s *snapshot) error {
		all = nil
		kinds, err := s.kinds(&journal.DeadLetterPlan{States: journal.DeadLetterStates(), Since: math.MinInt64, Until: math.MaxInt64}, false)
		for i := range kinds {
			k := &kinds[i]
			c := journal.DeadLetterCount{Policy: k.Policy, State: k.State, Team: k.Team, Reason: k.Reason, N: k.N}
			if err == nil && k.State == journal.DeadLetterOpen {
				c.Oldest, err = s.oldest(k)
			}
			all = append(all, c)
		}
		return err
	})
	slices.SortFunc(all, func(a, b journal.DeadLetterCount) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.State, b.State), cmp.Compare(a.Team, b.Team), cmp.Compare(a.Reason, b.Reason))
	})
	return all, err
}

// oldest is when the oldest of a kind was born.
func (s *snapshot) oldest(k *kind) (time.Time, error) {
	query, args := "SELECT at FROM dead_letters WHERE state = ? AND policy = ? AND team = ? AND reason = ?", []any{string(k.State), k.Policy, string(k.Team), string(k.Reason)}
	if k.caused {
		query, args = query+" AND fingerprint = ?", append(args, k.Fingerprint)
	}
	var at int64
	_, err := s.one(query+" ORDER BY record LIMIT 1", args, &at)
	return journal.FromMilli(at), err
}

// DeadLetterGroups implements journal.DeadLetterReader.
func (r *Reader) DeadLetterGroups(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) (all []journal.DeadLetterGroup, next string, err error) {
	p, err := f.Groups(cursor, limit)
	if err != nil {
		return nil, "", err
	}
	err = r.read(ctx, "group dead letters", func(s *snapshot) error {
		all, next = nil, ""
		if p.Unknown() {
			return nil
		}
		groups, err := s.groups(p)
		if err != nil {
			return err
		}
		if len(groups) > p.Limit {
			groups = groups[:p.Limit]
			last := &groups[p.Limit-1]
			next = p.Cursor(last.n, last.kinds[0].Fingerprint)
		}
		for i := range groups {
			g, err := s.describe(p, &groups[i])
			if err != nil {
				return err
			}
			all = append(all, g)
		}
		return nil
	})
	return all, next, err
}

// group is a cause, and its kinds.
type group struct {
	n     int64
	kinds []kind
}

// groups are the causes of a page, and one more.
func (s *snapshot) groups(p *journal.DeadLetterGroupPlan) ([]group, error) {
	kinds, err := s.kinds(p.DeadLetterPlan, true)
	if err != nil {
		return nil, err
	}
	if p.Searches {
		q := &search{snapshot: s, plan: p.DeadLetterPlan, causes: map[string]bool{}}
		if err := q.findCauses(); err != nil {
			return nil, err
		}
		kinds = slices.DeleteFunc(kinds, func(k kind) bool { return !q.causes[k.Fingerprint] })
	}
	at := map[string]int{}
	var all []group
	for _, k := range kinds {
		if k.Fingerprint == "" {
			continue
		}
		i, known := at[k.Fingerprint]
		if !known {
			i, all = len(all), append(all, group{})
			at[k.Fingerprint] = i
		}
		all[i].n, all[i].kinds = all[i].n+k.N, append(all[i].kinds, k)
	}
	all = slices.DeleteFunc(all, func(g group) bool { return g.n > p.Most || g.n == p.Most && g.kinds[0].Fingerprint <= p.After })
	slices.SortFunc(all, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.kinds[0].Fingerprint, b.kinds[0].Fingerprint))
	})
	return all[:min(len(all), p.Limit+1)], nil
}

// describe fills in what is told of a group.
func (s *snapshot) describe(p *journal.DeadLetterGroupPlan, of *group) (journal.DeadLetterGroup, error) {
	g, teams := journal.DeadLetterGroup{Cause: journal.Fingerprint{ID: of.kinds[0].Fingerprint}, N: of.n}, journal.TeamCounts{}
	for _, k := range of.kinds {
		teams[k.Team] += k.N
	}
	g.Teams = teams.Teams()
	first, err := s.seek(p.DeadLetterPlan, of.kinds, math.MinInt64, math.MaxInt64, 1, "ASC")
	if err != nil {
		return g, err
	}
	last, err := s.seek(p.DeadLetterPlan, of.kinds, math.MinInt64, math.MaxInt64, 1, "DESC")
	if err != nil {
		return g, err
	}
	ends, err := s.letterItems(append(first, last...))
	for i := range ends {
		g.End(&ends[i])
	}
	if err != nil {
		return g, err
	}
	causes, err := s.causes("WHERE id = ?", g.Cause.ID)
	for i := range causes {
		g.Name(&causes[i])
	}
	return g, err
}

// choice finds the open dead letters of a bulk run's filter.
type choice struct {
	*snapshot
	plan    *journal.DeadLetterPlan
	through int64
	search  *search // nil where there is no query
}

func (s *snapshot) choose(f journal.DeadLetterFilter, through int64) (*choice, error) {
	f.State = ""
	p, err := f.Plan("", 1)
	if err != nil {
		return nil, err
	}
	c := &choice{snapshot: s, plan: p, through: through}
	if p.Searches {
		c.search = &search{snapshot: s, plan: p, causes: map[string]bool{}}
		err = c.search.findCauses()
	}
	return c, err
}

// following are the next that are chosen behind a record, the oldest first.
func (c *choice) following(after int64, limit int) (all []letter, err error) {
	kinds, err := c.kinds(c.plan, false)
	if err != nil {
		return nil, err
	}
	for len(all) < limit {
		some, err := c.seek(c.plan, kinds, after, upTo(c.through), limit, "ASC")
		if err != nil {
			return nil, err
		}
		if len(some) > 0 {
			after = some[len(some)-1].record
		}
		last := len(some) < limit
		if c.search != nil {
			if some, err = c.search.those(some); err != nil {
				return nil, err
			}
		}
		if all = append(all, some...); last {
			break
		}
	}
	return all[:min(len(all), limit)], nil
}

// upTo is the record behind the last.
func upTo(last int64) int64 {
	if last == most {
		return most
	}
	return last + 1
}

// tallied are dead letters that are read at once.
const tallied = 1000

// tallies sums up what is chosen.
func (c *choice) tallies(recent time.Time) ([]journal.DeadLetterTally, error) {
	sums, busy := journal.DeadLetterSums{}, map[string]bool{}
	err := c.each("SELECT i.dead_letter FROM bulk_runs b JOIN bulk_items i ON i.run = b.id AND i.outcome = 'planned' WHERE b.state IN "+unfinished,
		func(scan func(to ...any) error) error {
			var id string
			err := scan(&id)
			busy[id] = true
			return err
		})
	if err != nil {
		return nil, err
	}
	for after := int64(math.MinInt64); ; {
		found, err := c.following(after, tallied)
		if err != nil {
			return nil, err
		}
		for chunk := range slices.Chunk(found, 256) {
			keys := make([]int64, len(chunk))
			for i := range chunk {
				keys[i] = chunk[i].record
			}
			in, args := list(keys)
			letters, err := c.keyedLetters("WHERE d.record IN "+in, args...)
			if err != nil {
				return nil, err
			}
			for i := range letters {
				d := &letters[i].DeadLetter
				t := d.Tally(letters[i].Subject.Policy, recent)
				t.Busy = busy[d.ID]
				sums.Add(t, 1, d.CreatedAt, d.CreatedAt, d.Record)
			}
		}
		if len(found) < tallied {
			return sums.Tallies(), nil
		}
		after = found[len(found)-1].record
	}
}
