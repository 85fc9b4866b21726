package journal

// Tell folds the records of a subject, in their order, to its story. base is what the last purge carried of it.
func Tell(s Subject, base *Entry, records []Entry) (Story, error) {
	story, p := Story{Subject: s}, newProjection()
	l, err := carriedLife(s, base)
	if err != nil {
		return story, err
	}
	for i := range records {
		e := &records[i]
		body, err := decodeBody(e)
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
	story.Held, story.DeadLetters = l.Held, l.deadLetters()
	return story, nil
}
