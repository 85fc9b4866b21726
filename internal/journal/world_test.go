package journal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/seeded"
)

// ids are the generated subjects', few, so that they repeat.
var ids = []string{"CLM-1-1", "CLM-2-1", "CLM-3-1"}

var tiss = decisiontest.TISSSubmission()

// call is one thing that happens to a subject.
type call struct {
	Kind                   string
	ID                     int
	Job, Element, Instance int64
	Count                  int // −1 for none
	Submitted              string
	Error                  string
	Success                bool // of an outcome
	Discard, Force, Fresh  bool // of a review
	Answer                 bool // the engine takes the answer
	Seen                   bool // the review job came just before the review
	Wait                   time.Duration
}

// reviews are the kinds of review.
var reviews = []string{"again", "again", "force", "force", "force", "fresh", "fresh", "discard"}

// calls generates calls with few keys and counts, so that they repeat.
var calls = rapid.Custom(func(t *rapid.T) call {
	job := rapid.Int64Range(1, 4).Draw(t, "job")
	how := rapid.SampledFrom(reviews).Draw(t, "review")
	return call{
		Kind:      rapid.SampledFrom([]string{"analyze", "analyze", "analyze", "analyze", "analyze", "outcome", "seen", "review", "review", "review", "review", "delivered"}).Draw(t, "kind"),
		ID:        rapid.IntRange(0, len(ids)-1).Draw(t, "id"),
		Job:       job,
		Element:   job*10 + rapid.Int64Range(0, 1).Draw(t, "element"),
		Instance:  rapid.Int64Range(100, 102).Draw(t, "instance"),
		Count:     rapid.SampledFrom([]int{0, 1, -1, 2, 4, 5, 7}).Draw(t, "count"),
		Submitted: rapid.SampledFrom([]string{"", "", "", "", "2025-01-10T18:00:00Z", "2025-01-14T18:00:00Z"}).Draw(t, "submitted"),
		Error: rapid.SampledFrom([]string{"TIMEOUT", "HTTP 503", "what is this", "DUPLICATE_CLAIM", "INSURANCE_EXPIRED after TIMEOUT",
			""}).Draw(t, "error"),
		Success: rapid.Bool().Draw(t, "success"),
		Discard: how == "discard",
		Force:   how == "force" || how == "fresh",
		Fresh:   how == "fresh",
		Answer:  rapid.Bool().Draw(t, "answer"),
		Seen:    rapid.IntRange(0, 3).Draw(t, "seen") > 0,
		Wait: rapid.SampledFrom([]time.Duration{0, 0, 1500 * time.Millisecond, time.Minute, 6 * time.Minute, 2 * time.Hour, 47 * time.Hour,
			50 * time.Hour}).Draw(t, "wait"),
	}
})

// lives generates calls of which many are repeated: another delivery of a job, keys that start again, a second
// process with the same failure.
func lives(least, most int) *rapid.Generator[[]call] {
	return rapid.Custom(func(t *rapid.T) []call {
		var all []call
		for i := range rapid.IntRange(least, most).Draw(t, "length") {
			c := calls.Draw(t, "call")
			if i > 0 && rapid.IntRange(0, 2).Draw(t, "again") > 0 {
				earlier := all[rapid.IntRange(max(0, i-4), i-1).Draw(t, "earlier")]
				c.Kind, c.ID, c.Job, c.Element, c.Count = earlier.Kind, earlier.ID, earlier.Job, earlier.Element, earlier.Count
				c.Error, c.Submitted = earlier.Error, earlier.Submitted
				if rapid.IntRange(0, 2).Draw(t, "instance too") > 0 {
					c.Instance = earlier.Instance
				}
			}
			all = append(all, c)
		}
		return all
	})
}

// world is a journal on a Memory, in a bubble, whose decisions have a clock of their own.
type world struct {
	memory  *testkit.Memory
	journal *journal.Journal
	now     time.Time
	end     func()
}

func newWorld() *world {
	w := &world{memory: testkit.NewMemory(), now: time.Date(2025, 1, 12, 10, 0, 0, 0, time.UTC)}
	w.journal = journal.New(w.memory, func() time.Time { return w.now }, func(h *journal.Happening) []journal.Message {
		if h.Attempt == nil {
			return nil
		}
		return []journal.Message{{ID: fmt.Sprint(h.Subject.ID, h.Attempt.Number, h.Attempt.Revision), Queue: "events", Key: h.Subject.ID, Type: "RetryScheduled", Body: "{}", At: w.now}}
	}, journal.NoHooks())
	stop, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { w.journal.Run(stop, context.Background()); close(done) }()
	w.end = func() { cancel(); <-done }
	return w
}

// set sets the clock of decisions, while nothing is being decided.
func (w *world) set(now time.Time) {
	synctest.Wait()
	w.now = now
}

// inBubble checks a property in fake time. A bubble's T has no deadline, which rapid would ask for.
func inBubble(t *testing.T, property func(*rapid.T)) {
	synctest.Test(t, func(t *testing.T) { seeded.Check(struct{ testing.TB }{t}, property) })
}

func subjectOf(c *call) journal.Subject {
	return journal.Subject{Tenant: journal.DefaultTenant, Policy: tiss.Name, ID: ids[c.ID]}
}

// do carries out a call and returns its answer, in words that do not depend on how calls are batched.
func (w *world) do(c *call) (string, journal.Recorded) {
	ctx := context.Background()
	switch c.Kind {
	case "analyze":
		r, err := w.journal.Analyze(ctx, w.analysis(c))
		if err != nil {
			return err.Error(), r
		}
		return tellAnswer(&r), r
	case "outcome":
		concluded, err := w.journal.Conclude(ctx, &journal.Outcome{Subject: subjectOf(c), Success: c.Success, ProcessInstanceKey: c.Instance})
		switch {
		case err != nil:
			return err.Error(), journal.Recorded{}
		case concluded.Changed:
			return "changed", journal.Recorded{}
		}
		return "unchanged", journal.Recorded{}
	case "seen":
		d, err := w.journal.ReviewSeen(ctx, &journal.ReviewJob{Subject: subjectOf(c), DeadLetter: w.latestLetter(c), JobKey: c.Job})
		if err != nil {
			return word(err), journal.Recorded{}
		}
		return string(d.State), journal.Recorded{}
	case "delivered":
		return w.deliver(ctx, c), journal.Recorded{}
	default:
		if c.Seen {
			_, _ = w.journal.ReviewSeen(ctx, &journal.ReviewJob{Subject: subjectOf(c), DeadLetter: w.latestLetter(c), JobKey: c.Job})
		}
		_, err := w.journal.Review(ctx, &journal.Review{Subject: subjectOf(c), DeadLetter: w.latestLetter(c), Discard: c.Discard,
			RetryOptions: journal.RetryOptions{Force: c.Force, Fresh: c.Fresh}, Delay: 10 * time.Minute, Reason: "teste", By: "ana"})
		if err != nil {
			return word(err), journal.Recorded{}
		}
		return fmt.Sprint("goes on with ", retries(w.memory, subjectOf(c))), journal.Recorded{}
	}
}

// retries returns the retryCount with which a subject's process goes on.
func retries(m *testkit.Memory, of journal.Subject) int64 {
	story, _, err := m.Story(context.Background(), of)
	if err != nil {
		panic(err)
	}
	return story.Episodes[len(story.Episodes)-1].Retries
}

// word returns the API's code of an error.
func word(err error) string {
	code, _, _ := strings.Cut(err.Error(), ":")
	return code
}

// deliver has the engine take the subject's first answer, or not know its job.
func (w *world) deliver(ctx context.Context, c *call) string {
	for _, m := range w.memory.Outbox() {
		a, err := journal.ReadAnswer(&m)
		if m.Queue != journal.ReviewQueue || err != nil || a.Subject != subjectOf(c) {
			continue
		}
		if err := w.journal.Delivered(ctx, a, c.Success); err != nil {
			return err.Error()
		}
		return a.Decision + " to " + fmt.Sprint(a.JobKey)
	}
	return "nothing to deliver"
}

func (w *world) analysis(c *call) *journal.Analysis {
	v := decision.Variables{ID: decision.Text(ids[c.ID]), Error: decision.Text(c.Error)}
	if c.Count >= 0 {
		v.RetryCount = decision.Value(fmt.Sprint(c.Count))
	}
	if c.Submitted != "" {
		v.LastSubmissionTime = decision.Text(c.Submitted)
	}
	f, _ := tiss.Read(v) // valid except for
	a := &journal.Analysis{Subject: subjectOf(c), JobKey: c.Job, ElementInstanceKey: c.Element, ProcessInstanceKey: c.Instance,
		Rule: decision.RNBIL004, Policy: tiss, Failure: &f, Error: c.Error, ReceivedAt: w.now}
	return a
}

func tellAnswer(r *journal.Recorded) string {
	d := &r.Decision
	if d.Rejection != nil {
		return "rejected"
	}
	next := "-"
	if d.ShouldRetry() {
		next = clock(d.NextRetryTime)
	}
	return fmt.Sprintf("%s %s %s %d next %s attempt %d raised %t", r.How, d.Outcome, d.ErrorClassification, d.RetryCount, next, r.Attempt.Number, r.Raised())
}

func (w *world) story(c *call) journal.Story {
	story, _, err := w.memory.Story(context.Background(), subjectOf(c))
	if err != nil {
		panic(err)
	}
	return story
}

// latestLetter returns the id of the newest dead letter.
func (w *world) latestLetter(c *call) string {
	letters := w.story(c).DeadLetters
	if len(letters) == 0 {
		return "none"
	}
	return slices.MaxFunc(letters, func(a, b journal.DeadLetter) int { return int(a.Record - b.Record) }).ID
}
