package journal

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"retry-worker/internal/redact"
)

// Erasure is a request to remove a subject's records and its name (LGPD).
type Erasure struct {
	Subject Subject
	// Reason and By are a person's words, which are required, and name.
	Reason, By string
}

// Erased is the result of an erasure: how many records were removed, and the number of the record that says so.
type Erased struct {
	Records int   `json:"records" doc:"How many were erased."`
	Record  int64 `json:"record" doc:"The record that says so."`
}

// Erase removes a subject's records and its name. Its error holds a *StoreError, or is a *Refusal: the subject is not
// known, or something is still to be done about it.
func (j *Journal) Erase(ctx context.Context, store Expunger, e Erasure) (Erased, error) {
	c, err := j.expunge(ctx, store, Scope{Subject: e.Subject}, func(head Head, p *Expunging) (*Changes, error) {
		return p.Erase(head, j.now(), e, j.publish)
	})
	if err != nil {
		return Erased{}, err
	}
	return Erased{c.Expunged.count(), c.Records[len(c.Records)-1].Record}, nil
}

// Erase returns the changes of an erasure. Its error is one of those above, or names a record that is not what was
// signed.
func (p *Expunging) Erase(head Head, at time.Time, e Erasure, publish Publisher) (*Changes, error) {
	if len(p.Subjects) == 0 {
		return nil, Refuse(SubjectNotFound, "the journal knows no such subject; it may have been erased or purged already")
	}
	s, err := p.Subjects[0].fold(head.Record)
	if err != nil {
		return nil, err
	}
	if why := s.busy(); why != nil {
		return nil, why
	}
	x := newExpunge(head, at, publish)
	x.takeFirst(s, len(s.Records))
	if x.out.Causes, err = p.alone(x.left); err != nil {
		return nil, err
	}
	for _, f := range x.left.causes {
		f.Pattern = "" // a cause that others share keeps it
	}
	for i := range s.Waiting {
		x.changes.Published = append(x.changes.Published, s.Waiting[i].Sequence)
	}
	id := regexp.MustCompile("(?i)" + regexp.QuoteMeta(e.Subject.ID))
	reason := id.ReplaceAllLiteralString(e.Reason, fmt.Sprint("#", s.Key))
	x.body.Reason, x.body.By = storable(redact.Line(reason, maxReasonBytes)), bounded(e.By)
	return x.close(ErasureEntry), nil
}

// alone returns the causes (Fingerprint.ID) that no subject had but this one, whose sums are in left, and erased ones.
func (p *Expunging) alone(left *projection) (causes []string, err error) {
	erased := sums{}
	maps.Copy(erased, left.sums)
	for i := range p.Erasures {
		b, err := BodyOf[expungeBody](&p.Erasures[i])
		if err != nil {
			return nil, err
		}
		for _, s := range b.Sums {
			erased.add(s)
		}
	}
	for id := range left.causes {
		if p.Failures[id] <= erased[Sum{Name: SumCauseFailures, Cause: id}] {
			causes = append(causes, id)
		}
	}
	slices.Sort(causes)
	return causes, nil
}

// busy returns why the subject cannot be erased yet; nil if it can.
func (s *folded) busy() *Refusal {
	h := s.whole
	busy := func(why string, args ...any) *Refusal { return Refuse(SubjectBusy, why, args...) }
	switch h.Episode.State {
	case Scheduled, Reprocessing:
		return busy("a retry of it is under way; erase it once that has ended, or report how it ended (/outcomes)")
	case Dead:
		return busy("its dead letter %s waits for a person; retry or discard that first", h.Episode.DeadLetter)
	}
	if len(h.Held) > 0 {
		return busy("it waits at the gate of a destination; erase it once it has gone, or cancel its process")
	}
	if slices.ContainsFunc(s.Waiting, func(m Message) bool { return m.Queue == GateQueue }) {
		return busy("the answer of its gate is on its way to the process; try again when that has it")
	}
	for _, d := range h.deadLetters() {
		if d.Answer != 0 {
			return busy("the answer about its dead letter %s is on its way to the process; try again when that has it", d.ID)
		}
	}
	if s.Run != "" {
		return busy("the bulk run %s is about it; wait until that has ended, or cancel it", s.Run)
	}
	return nil
}
