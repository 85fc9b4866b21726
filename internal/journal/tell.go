package journal

import (
	"cmp"
	"slices"
)

// Tell folds the records of a subject, in their order, to its story. base is what the last purge carried of it.
func Tell(s Subject, base *Entry, records []Entry) (Story, error) {
	story, p := Story{Subject: s}, newProjection()
	l, err := carriedLife(s, base)
	for i := range records {
		e := &records[i]
		var body any
		if err == nil {
			body, err = decodeBody(e)
		}
		if err != nil {
			return story, err
		}
		if a, ok := body.(*Attempt); ok {
			story.Attempts = append(story.Attempts, *a)
		} else {
			story.Entries = append(story.Entries, *e)
		}
		p.apply(l, e, body)
	}
	if story.Episodes = l.ended; l.Episode.Number > 0 {
		story.Episodes = append(story.Episodes, l.Episode)
	}
	story.Held = l.Held
	for _, d := range l.letters {
		story.DeadLetters = append(story.DeadLetters, *d)
	}
	slices.SortFunc(story.DeadLetters, func(a, b DeadLetter) int { return cmp.Compare(a.Record, b.Record) })
	return story, err
}
