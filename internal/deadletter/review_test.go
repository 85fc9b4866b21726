package deadletter_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

const oneClaim = "CLM-001-123"

// TestManualRetry is R17's table: who may go on, with which count, in which episode, and after how long; and R29's: of what is
// due so long after now, or is then.
func TestManualRetry(t *testing.T) {
	for _, test := range []struct {
		name         string
		retries      int
		text         string
		force, fresh bool
		count        int64
		episode      int64
		refused      journal.Code
		due, anew    time.Duration
	}{
		{name: "its deadline has passed", text: "DUPLICATE_CLAIM", due: -time.Second, refused: journal.DeadlineMissed},
		{name: "its deadline passes", text: "DUPLICATE_CLAIM", due: 3 * time.Minute, refused: journal.DeadlineMissed},
		{name: "in time", text: "DUPLICATE_CLAIM", due: 7 * time.Minute, count: 1, episode: 1},
		{name: "late, forced", text: "DUPLICATE_CLAIM", due: -time.Second, force: true, count: 1, episode: 1},
		{name: "late, with a new deadline", text: "DUPLICATE_CLAIM", due: -time.Second, anew: time.Hour, count: 1, episode: 1},
		{name: "late, with a new deadline that passes too", text: "DUPLICATE_CLAIM", due: -time.Second, anew: time.Minute, refused: journal.DeadlineMissed},
		{name: "forced, with a new deadline that passes too", text: "DUPLICATE_CLAIM", due: -time.Second, anew: time.Minute, force: true, refused: journal.DeadlineMissed},
		{name: "below the limit", retries: 2, text: "DUPLICATE_CLAIM", count: 3, episode: 1},
		{name: "below the limit, forced", retries: 2, text: "DUPLICATE_CLAIM", force: true, count: 3, episode: 1},
		{name: "below the limit, from the beginning", retries: 2, text: "DUPLICATE_CLAIM", force: true, fresh: true, count: 0, episode: 2},
		{name: "at the limit", retries: 5, text: "TIMEOUT", refused: journal.MaxRetriesExceeded},
		{name: "above the limit", retries: 7, text: "TIMEOUT", refused: journal.MaxRetriesExceeded},
		{name: "at the limit, forced", retries: 5, text: "TIMEOUT", force: true, count: 6, episode: 1},
		{name: "at the limit, from the beginning", retries: 5, text: "TIMEOUT", force: true, fresh: true, count: 0, episode: 2},
		{name: "from the beginning, not forced", retries: 5, text: "TIMEOUT", fresh: true, refused: deadletter.ForceRequired},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Bubble(t, func(t *testing.T, w *testkit.Fixture) {
				c, now := deadletter.Command{Force: test.force, Fresh: test.fresh}, time.Now().Add(time.Hour)
				if test.due != 0 {
					w.Due = now.Add(test.due)
				}
				if test.anew != 0 {
					c.Deadline = now.Add(test.anew)
				}
				c.ID = w.DieWaiting(tiss, oneClaim, test.text, test.retries)
				time.Sleep(time.Hour)
				before := w.Item(c.ID)
				want(t, "whether it takes force", before.ForceNeeded(), test.retries >= 5 || test.due < 0)
				done, err := retry(w, c)
				if test.refused != "" {
					refused(t, test.name, err, test.refused)
					want(t, "the dead letter", w.Item(c.ID), before)
					want(t, "answers", len(w.Answers()), 0)
					return
				}
				testkit.Must(t, err)
				if got := string(w.Answers()[0].Variables); !strings.Contains(got, fmt.Sprintf(`"retryCount":%d,`, test.count)) {
					t.Errorf("the process gets %s, want retryCount %d", got, test.count)
				}
				story, _, err := w.Store.Story(t.Context(), done.Subject)
				want(t, "episode", story.Episodes[len(story.Episodes)-1].Number, test.episode)
				testkit.Must(t, err)
				waits := done.Review.NextRetryTime.Sub(time.Now().UTC().Truncate(time.Second))
				rung := 5 * time.Minute << max(test.count-1, 0) // R5
				if waits < rung*4/5 || waits > rung*6/5 || waits%time.Minute != 0 {
					t.Errorf("waits %v, want whole minutes within 20 %% of %v", waits, rung)
				}
				want(t, "the item given back", done, w.Item(c.ID))
				want(t, "a new deadline", strings.Contains(string(w.Answers()[0].Variables), `"submissionDeadline":"`+decision.Instant(c.Deadline)), test.anew != 0)
				want(t, "state", done.State, journal.DeadLetterReprocessing)
				want(t, "by", done.Review.By, "maria")
				want(t, "process", done.Process, deadletter.Waiting)
			})
		})
	}
}

// TestNextRetry: the manual retry waits as the policy does at that count, beyond the ladder as at its end (R14: 30 s), or as
// its job asked for (R15), or not at all.
func TestNextRetry(t *testing.T) {
	for _, test := range []struct {
		policy  string
		retries int
		text    string
		command deadletter.Command
		waits   time.Duration
	}{
		{"failed-job", 3, "exit status 1", deadletter.Command{Force: true, When: deadletter.Backoff}, 30 * time.Second},
		{"failed-job", 4, "exit status 1", deadletter.Command{Force: true}, 30 * time.Second},
		{"whatsapp-message", 0, "HTTP 400", deadletter.Command{}, 5 * time.Second},
		{"whatsapp-message", 3, "HTTP 503", deadletter.Command{Force: true}, 5 * time.Minute},
		{"no-retry", 0, "exit status 1", deadletter.Command{Force: true}, time.Second},
		{"job-queue", 2, "exit status 1", deadletter.Command{Force: true}, 42 * time.Second},
		{"whatsapp-message", 0, "HTTP 400", deadletter.Command{When: deadletter.Now}, 0},
	} {
		t.Run(fmt.Sprint(test.policy, test.retries, test.command.When), func(t *testing.T) {
			testkit.Bubble(t, func(t *testing.T, w *testkit.Fixture) {
				if test.policy == "job-queue" { // what it asked for stands in its last retry
					w.Fail(test.policy, "job-1", test.text, test.retries-1)
					time.Sleep(time.Minute)
				}
				test.command.ID = w.DieWaiting(test.policy, "job-1", test.text, test.retries)
				done, err := retry(w, test.command)
				testkit.Must(t, err)
				want(t, "nextRetryTime", done.Review.NextRetryTime, time.Now().UTC().Truncate(time.Millisecond).Add(test.waits))
			})
		})
	}
}

// TestPolicyThatIsGone: nobody knows its backoff any more; at once it can be retried all the same.
func TestPolicyThatIsGone(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T, w *testkit.Fixture) {
		id := w.DieWaiting(tiss, oneClaim, "DUPLICATE_CLAIM", 1)
		w.SetPolicies(decision.Policies{})
		_, err := retry(w, deadletter.Command{ID: id})
		if r := refused(t, "backoff", err, deadletter.PolicyNotFound); !strings.Contains(r.Message, "now") {
			t.Errorf("the message does not say what works: %q", r.Message)
		}
		if _, err := retry(w, deadletter.Command{ID: id, When: deadletter.Now}); err != nil {
			t.Errorf("now: %v", err)
		}
		w.SetPolicies(catalogue.Default().Policies)
		lonely := w.Die(tiss, "CLM-2-1", "DUPLICATE_CLAIM", 1)
		w.SetPolicies(decision.Policies{})
		_, err = retry(w, deadletter.Command{ID: lonely})
		refused(t, "no process either, so now does not work", err, journal.InvalidRetryState)
	})
}

// TestWhatPeopleWrite: an id in capitals with white space about it, and the longest reason, are taken; what is refused, the
// API's testdata/refused.txt has.
func TestWhatPeopleWrite(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T, w *testkit.Fixture) {
		id, reason := w.DieWaiting(tiss, oneClaim, "DUPLICATE_CLAIM", 1), strings.Repeat("ã", deadletter.MaxReason)
		_, err := retry(w, deadletter.Command{ID: " " + strings.ToUpper(id) + "\n", Reason: reason})
		testkit.Must(t, err)
		want(t, "the reason that is kept", w.Item(id).Review.Reason, reason)
	})
}

// TestRetryNeedsAProcess: without one nothing would carry the retry out; letting go needs none.
func TestRetryNeedsAProcess(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T, w *testkit.Fixture) {
		id := w.Die(tiss, oneClaim, "DUPLICATE_CLAIM", 1)
		_, err := retry(w, deadletter.Command{ID: id})
		if r := refused(t, "at once", err, journal.InvalidRetryState); !strings.Contains(r.Message, "yet") {
			t.Errorf("a process that may still come: %q", r.Message)
		}
		time.Sleep(time.Minute)
		_, err = retry(w, deadletter.Command{ID: id})
		if r := refused(t, "later", err, journal.InvalidRetryState); strings.Contains(r.Message, "yet") || r.By != "" {
			t.Errorf("nobody came: %q", r.Message)
		}
		done, err := w.DeadLetters.Decide(t.Context(), deadletter.Command{Action: journal.BulkDiscard, ID: id, Reason: "r", By: "maria"})
		testkit.Must(t, err)
		want(t, "process", done.Process, deadletter.Nobody)
		want(t, "delivery", done.Delivery, journal.DeliveryNobody)
	})
}

// TestJournalDown: nothing is decided, and that is said as what it is.
func TestJournalDown(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T, w *testkit.Fixture) {
		id := w.DieWaiting(tiss, oneClaim, "DUPLICATE_CLAIM", 1)
		w.Memory.Fail(3, testkit.Fault{})
		if _, err := retry(w, deadletter.Command{ID: id}); !errors.Is(err, journal.ErrUnavailable) || journal.RefusalOf(err) != nil {
			t.Errorf("while it cannot be written: %v", err)
		}
		w.Memory.SetDown(true)
		for what, err := range map[string]error{
			"show": second(w.DeadLetters.Show(t.Context(), id)), "retry": second(retry(w, deadletter.Command{ID: id})),
		} {
			if failed, ok := errors.AsType[*journal.StoreError](err); !ok || journal.RefusalOf(err) != nil {
				t.Errorf("%s: %v (%v), want the store's error", what, err, failed)
			}
		}
		w.Memory.SetDown(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		want(t, "state", w.Item(id).State, journal.DeadLetterOpen)
		if _, err := retry(w, deadletter.Command{ID: id}); err != nil {
			t.Errorf("once it can be written again: %v", err)
		}
	})
}

// retry decides as maria, for a reason that most tests do not look at.
func retry(f *testkit.Fixture, c deadletter.Command) (deadletter.Item, error) {
	c.Action, c.Reason, c.By = journal.BulkRetry, cmp.Or(c.Reason, "portal de volta"), "maria"
	return f.DeadLetters.Decide(context.Background(), c)
}

func second[T any](_ T, err error) error { return err }

// TestList says of each whether a process waits.
func TestList(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T, w *testkit.Fixture) {
		w.DieWaiting(tiss, "CLM-0-1", "DUPLICATE_CLAIM", 1)
		w.Die(tiss, "CLM-1-1", "DUPLICATE_CLAIM", 1)
		time.Sleep(2 * time.Minute)
		w.Die(tiss, "CLM-2-1", "DUPLICATE_CLAIM", 1)
		items, _, err := w.DeadLetters.List(t.Context(), journal.DeadLetterFilter{Policy: tiss, Sort: deadletter.Newest}, "", 50)
		testkit.Must(t, err)
		var seen []deadletter.Process
		for _, d := range items {
			seen = append(seen, d.Process)
		}
		want(t, "from the newest on", seen, []deadletter.Process{deadletter.Expected, deadletter.Nobody, deadletter.Waiting})
	})
}

// TestProcessOf: whether a process waits, from what is known.
func TestProcessOf(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, test := range []struct {
		name   string
		letter journal.DeadLetter
		up     time.Time
		want   deadletter.Process
	}{
		{"its job is known", journal.DeadLetter{State: "open", ReviewJobKey: 1, CreatedAt: ago(time.Hour)}, ago(time.Hour), deadletter.Waiting},
		{"its job is known, engine down", journal.DeadLetter{State: "open", ReviewJobKey: 1, CreatedAt: ago(time.Hour)}, time.Time{}, deadletter.Waiting},
		{"young", journal.DeadLetter{State: "open", CreatedAt: ago(59 * time.Second)}, ago(time.Hour), deadletter.Expected},
		{"60 s old", journal.DeadLetter{State: "open", CreatedAt: ago(60 * time.Second)}, ago(time.Hour), deadletter.Nobody},
		{"old, engine down", journal.DeadLetter{State: "open", CreatedAt: ago(time.Hour)}, time.Time{}, deadletter.Expected},
		{"old, engine back for 59 s", journal.DeadLetter{State: "open", CreatedAt: ago(time.Hour)}, ago(59 * time.Second), deadletter.Expected},
		{"old, engine back for 60 s", journal.DeadLetter{State: "open", CreatedAt: ago(time.Hour)}, ago(60 * time.Second), deadletter.Nobody},
		{"the engine knew its job no longer", journal.DeadLetter{State: "open", ReviewJobKey: 1, Delivery: journal.DeliveryNobody}, ago(time.Hour), deadletter.Nobody},
		{"discarded, nobody waited", journal.DeadLetter{State: "discarded", Delivery: journal.DeliveryNobody}, ago(time.Hour), deadletter.Nobody},
		{"decided, on its way", journal.DeadLetter{State: "reprocessing", ReviewJobKey: 1, Delivery: journal.DeliveryPending}, time.Time{}, deadletter.Waiting},
		{"decided and taken", journal.DeadLetter{State: "reprocessing", ReviewJobKey: 1, Delivery: journal.DeliveryTaken}, ago(time.Hour), deadletter.Answered},
		{"recovered by itself", journal.DeadLetter{State: "recovered"}, ago(time.Hour), deadletter.Answered},
		{"superseded", journal.DeadLetter{State: "superseded"}, time.Time{}, deadletter.Answered},
	} {
		s := deadletter.New(nil, nil, nil, func() time.Time { return now }, func() time.Time { return test.up })
		want(t, test.name, s.Process(&test.letter), test.want)
	}
}
