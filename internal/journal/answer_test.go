package journal_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// onlyAnswer is the one that is on its way.
func onlyAnswer(t *testing.T, m *testkit.Memory) *journal.Answer {
	t.Helper()
	var all []*journal.Answer
	for _, o := range m.Outbox() {
		if o.Queue != journal.ReviewQueue {
			continue
		}
		a, err := journal.ReadAnswer(&o)
		testkit.Must(t, err)
		all = append(all, a)
	}
	if len(all) != 1 {
		t.Fatalf("%d answers are on their way, want 1", len(all))
	}
	return all[0]
}

// waiting is a dead letter whose review job came.
func waiting(t *testing.T, b *bench) (journal.Subject, string) {
	t.Helper()
	r, err := b.journal.Analyze(t.Context(), deadly(claim(1), 1))
	testkit.Must(t, err)
	of, letter := failure(claim(1), 1).Subject, r.Attempt.DeadLetter
	_, err = b.journal.ReviewSeen(t.Context(), &journal.ReviewJob{Subject: of, DeadLetter: letter, JobKey: 1<<62 + 1})
	testkit.Must(t, err)
	return of, letter
}

// TestOneOfTwoOperatorsWins, and the other is told who and when; the process gets one answer.
func TestOneOfTwoOperatorsWins(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		of, letter := waiting(t, b)
		names, errs := []string{"ana", "rui", "eva"}, make([]error, 3)
		began := time.Now()
		var all sync.WaitGroup
		for i, name := range names {
			all.Go(func() {
				_, errs[i] = b.journal.Review(t.Context(), &journal.Review{Subject: of, DeadLetter: letter, Discard: name == "eva",
					RetryOptions: journal.RetryOptions{Force: name != "eva"}, Reason: "teste", By: name})
			})
		}
		all.Wait()
		winner := ""
		for i, err := range errs {
			if err == nil {
				winner += names[i]
			}
		}
		for i, err := range errs {
			if err == nil {
				continue
			}
			decided := journal.RefusalOf(err)
			if decided == nil || decided.Code != journal.InvalidRetryState || decided.By != winner ||
				decided.At.Sub(began).Abs() > time.Second || !strings.Contains(err.Error(), " by "+winner+";") {
				t.Errorf("%s is told %v, want that %s was faster", names[i], err, winner)
			}
		}
		if a := onlyAnswer(t, b.memory); a.JobKey != 1<<62+1 || a.Subject != of || a.DeadLetter != letter {
			t.Errorf("the answer is %+v", a)
		}
	})
}

// TestHostileWordsOfAPerson are data, and nothing more; what is too long is cut.
func TestHostileWordsOfAPerson(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		of, letter := waiting(t, b)
		hostile := "\x1b[31m<script>alert(1)</script>\x00\xff\"}," + strings.Repeat("x", 1<<20)
		done, err := b.journal.Review(t.Context(), &journal.Review{Subject: of, DeadLetter: letter, RetryOptions: journal.RetryOptions{Force: true}, Reason: hostile, By: strings.Repeat("é", 1<<10)})
		testkit.Must(t, err)
		note := done.Review
		if len(note.Reason) > 1100 || len(note.By) > 200 || strings.Contains(note.Reason, "\x00") || !utf8.ValidString(note.Reason+note.By) {
			t.Errorf("%d bytes of a reason and %d of a name are kept: %.80q", len(note.Reason), len(note.By), note.Reason)
		}
		var v map[string]any
		if err := json.Unmarshal(onlyAnswer(t, b.memory).Variables, &v); err != nil || v["reviewReason"] != note.Reason || len(v) != 8 {
			t.Errorf("the process gets %v (%v)", v, err)
		}
	})
}

// TestLateAnswersChangeNothing: one that another review has overtaken, and one that was told already.
func TestLateAnswersChangeNothing(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		of, letter := waiting(t, b)
		review := func() *journal.Answer {
			t.Helper()
			_, err := b.journal.Review(t.Context(), &journal.Review{Subject: of, DeadLetter: letter, RetryOptions: journal.RetryOptions{Force: true}, Reason: "teste", By: "ana"})
			testkit.Must(t, err)
			return onlyAnswer(t, b.memory)
		}
		told := func(a *journal.Answer, taken bool, want journal.DeadLetterState, delivery journal.Delivery) {
			t.Helper()
			testkit.Must(t, b.journal.Delivered(t.Context(), a, taken))
			if d, _, _ := b.memory.DeadLetter(t.Context(), letter); d.State != want || d.Delivery != delivery {
				t.Errorf("the dead letter is %s, its delivery %q; want %s and %q", d.State, d.Delivery, want, delivery)
			}
		}
		first := review()
		told(first, false, journal.DeadLetterOpen, journal.DeliveryNobody)
		told(first, true, journal.DeadLetterOpen, journal.DeliveryNobody)
		_, err := b.journal.ReviewSeen(t.Context(), &journal.ReviewJob{Subject: of, DeadLetter: letter, JobKey: 8})
		testkit.Must(t, err)
		second := review()
		told(first, false, journal.DeadLetterReprocessing, journal.DeliveryPending)
		told(second, true, journal.DeadLetterReprocessing, journal.DeliveryTaken)
		told(second, false, journal.DeadLetterReprocessing, journal.DeliveryTaken)
		testkit.Must(t, verifyLedger(b.memory))
		if n := b.memory.End().Record; n != 7 { // the failure, two review jobs, two reviews, two deliveries
			t.Errorf("%d records, want 7", n)
		}
	})
}

func TestReadAnswer(t *testing.T) {
	for _, body := range []string{"", "[]", `{"jobKey":7}`, `{"jobKey":"x"}`} {
		if a, err := journal.ReadAnswer(&journal.Message{Sequence: 3, Body: body}); err == nil || !strings.Contains(err.Error(), "message 3") {
			t.Errorf("%q is read as %+v (%v)", body, a, err)
		}
	}
}

// TestForgedAnswers are read by nobody.
func TestForgedAnswers(t *testing.T) {
	m := journal.Message{Queue: journal.GateQueue, Sequence: 7, Body: `{"action":"released"}`}
	if _, err := journal.ReadGateAnswer(&m); err != nil {
		t.Error(err)
	}
	m.Forged = true
	if _, err := journal.ReadGateAnswer(&m); err == nil || !strings.Contains(err.Error(), "message 7") {
		t.Errorf("a forged answer is read (%v)", err)
	}
}
