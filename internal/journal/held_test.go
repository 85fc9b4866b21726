package journal_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestDepartedIsNotHeldAgain: the engine gives a job once more that a gate dealt with. Whatever it did, and whatever was
// heard since, the job is not held again, so that no claim is given up twice; three hours later it is another one. A claim that
// was to go before now stays.
func TestDepartedIsNotHeldAgain(t *testing.T) {
	for name, d := range map[string]journal.Departure{
		"canary": {Kind: destination.Test}, "ramp": {Kind: destination.RampedUp}, "up": {Kind: destination.Pass},
		"given up": {GiveUp: decision.ReasonDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			f := testkit.New(t, testkit.At(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)))
			a := &journal.Arrival{Subject: testkit.Subject(decision.DefaultPolicy, "CLM-1-1"), JobKey: 7, ProcessInstanceKey: 5,
				Destination: "portal", Policy: f.Policies()[decision.DefaultPolicy]}
			testkit.Must(t, f.Journal.Hold(t.Context(), a))
			d.Subject, d.JobKey, d.Before = a.Subject, a.JobKey, f.Now()
			if went, err := f.Journal.Depart(t.Context(), &d); went || !errors.Is(err, journal.ErrLate) {
				t.Errorf("too late: %t, %v", went, err)
			}
			d.Before = f.Now().Add(time.Second)
			if went, err := f.Journal.Depart(t.Context(), &d); !went || err != nil {
				t.Fatalf("in time: %t, %v", went, err)
			}
			f.Advance(30 * time.Minute)
			f.Succeed(decision.DefaultPolicy, "CLM-1-1")
			for after, want := range []error{journal.ErrDeparted, nil} {
				if err := f.Journal.Hold(t.Context(), a); !errors.Is(err, want) {
					t.Errorf("after %d times three hours: %v, want %v", after, err, want)
				}
				f.Advance(3 * time.Hour)
			}
		})
	}
}

// TestWhatWentThroughHasAnswered: a portal answers, for all that its gate knows, where the claim that went through succeeds; one that
// its process gives up by itself tells nothing, with an open episode and without.
func TestWhatWentThroughHasAnswered(t *testing.T) {
	for _, failed := range []bool{false, true} {
		for _, success := range []bool{false, true} {
			f := testkit.New(t, testkit.At(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)))
			of := testkit.Subject(decision.DefaultPolicy, "CLM-1-1")
			if failed {
				f.Fail(decision.DefaultPolicy, of.ID, "TIMEOUT", 0)
				f.Advance(time.Hour)
			}
			testkit.Must(t, f.Journal.Hold(t.Context(), &journal.Arrival{Subject: of, JobKey: 7, ProcessInstanceKey: 5, Destination: "portal",
				Policy: f.Policies()[decision.DefaultPolicy]}))
			_, err := f.Journal.Depart(t.Context(), &journal.Departure{Subject: of, JobKey: 7, Kind: destination.Test, Before: f.Now().Add(time.Second)})
			testkit.Must(t, err)
			f.Advance(time.Minute)
			_, err = f.Journal.Conclude(t.Context(), &journal.Outcome{Subject: of, Success: success, ProcessInstanceKey: 5})
			testkit.Must(t, err)
			answered := false
			records, err := f.Store.Records(t.Context(), journal.RecordFilter{}, 0, 10)
			testkit.Must(t, err)
			for i := range records {
				if e := records[i].Entry; e != nil {
					sent, err := journal.ReadSent(e)
					answered = answered || err == nil && sent.JobKey == 7
				}
			}
			if answered != success {
				t.Errorf("failed before: %t, success: %t, and the portal is said to have answered: %t", failed, success, answered)
			}
		}
	}
}

// TestGivenUpCountsTheSubjectsRetries: while a process waits, another of its claim fails, or fails and recovers. The dead
// letter of who waited counts the retries of the claim's episode (R12), as its next failure does, whose key was another's.
func TestGivenUpCountsTheSubjectsRetries(t *testing.T) {
	for name, recovers := range map[string]bool{"it fails": false, "it recovers": true} {
		t.Run(name, func(t *testing.T) {
			f := testkit.New(t, testkit.At(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)))
			of := testkit.Subject(decision.DefaultPolicy, "CLM-1-1")
			hold := func(key int64) {
				testkit.Must(t, f.Journal.Hold(t.Context(), &journal.Arrival{Subject: of, JobKey: key, ProcessInstanceKey: key,
					Destination: "portal", Policy: f.Policies()[decision.DefaultPolicy]}))
			}
			want := int64(0)
			first := f.Fail(decision.DefaultPolicy, of.ID, "Read timed out", 3)
			if recovers {
				hold(7)
				f.Succeed(decision.DefaultPolicy, of.ID)
			} else {
				f.Succeed(decision.DefaultPolicy, of.ID)
				hold(7)
				want = f.Fail(decision.DefaultPolicy, of.ID, "Read timed out", 0).RetryCount
			}
			_, err := f.Journal.Depart(t.Context(), &journal.Departure{Subject: of, JobKey: 7, GiveUp: decision.ReasonDeadline})
			testkit.Must(t, err)
			told, _, err := f.Memory.Story(t.Context(), of)
			testkit.Must(t, err)
			last := told.Episodes[len(told.Episodes)-1]
			if d := told.DeadLetters[len(told.DeadLetters)-1]; d.RetryCount != want || last.Retries != want {
				t.Errorf("the dead letter counts %d retries and its episode %d, want %d", d.RetryCount, last.Retries, want)
			}
			a := f.Analysis(decision.DefaultPolicy, of.ID, "HTTP 503", 0)
			a.JobKey, a.ElementInstanceKey, a.ProcessInstanceKey = first.JobKey, first.ElementInstanceKey, 7
			if r, err := f.Journal.Analyze(t.Context(), a); err != nil || r.Decision.RetryCount != want+1 {
				t.Errorf("the next failure is retry %d, want %d: %v", r.Decision.RetryCount, want+1, err)
			}
		})
	}
}

// TestTheLimitOfAnAbandonedEpisodeGivesUpNothing: a claim failed, its process was cancelled, and another process brings it days
// later to a gate that is shut. Its clock starts when it is held (R27), not when an episode failed of which nothing was heard for
// longer than the total limit; within that the first failure counts.
func TestTheLimitOfAnAbandonedEpisodeGivesUpNothing(t *testing.T) {
	for after, anew := range map[time.Duration]bool{40 * time.Hour: false, 48 * time.Hour: false, 100 * time.Hour: true} {
		f := testkit.New(t, testkit.At(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)))
		of, first := testkit.Subject(decision.DefaultPolicy, "CLM-1-1"), f.Now()
		f.Fail(of.Policy, of.ID, "TIMEOUT", 0)
		f.Advance(after)
		testkit.Must(t, f.Journal.Hold(t.Context(), &journal.Arrival{Subject: of, JobKey: 7, ProcessInstanceKey: 5, Destination: "portal",
			Policy: f.Policies()[of.Policy]}))
		told, _, err := f.Memory.Story(t.Context(), of)
		testkit.Must(t, err)
		retries := int64(1)
		if anew {
			first, retries = f.Now(), 0
		}
		if h := told.Held[0]; !h.Limit.Equal(first.Add(48*time.Hour)) || h.Retries != retries {
			t.Errorf("after %s: held up to %s with %d retries made, want %s and %d", after, h.Limit, h.Retries, first.Add(48*time.Hour), retries)
		}
	}
}

// givenUpAtAGate holds a claim that never failed at the gate of a destination and gives it up there, for lack of time. It returns the
// dead letter, on which a process waits for a decision.
func givenUpAtAGate(t *testing.T, f *testkit.Fixture, a *journal.Arrival) (letter string) {
	t.Helper()
	a.JobKey, a.ProcessInstanceKey, a.Destination, a.Policy = 7, 5, "portal", f.Policies()[a.Subject.Policy]
	testkit.Must(t, f.Journal.Hold(t.Context(), a))
	_, err := f.Journal.Depart(t.Context(), &journal.Departure{Subject: a.Subject, JobKey: a.JobKey, GiveUp: decision.ReasonDeadline})
	testkit.Must(t, err)
	told, _, err := f.Memory.Story(t.Context(), a.Subject)
	testkit.Must(t, err)
	letter = told.DeadLetters[0].ID
	f.Await(letter)
	return letter
}

// TestGivenUpAtAGateKeepsToItsHours: a claim that never failed, and that a person sends on, goes when the destination at whose gate
// it was given up opens (R29).
func TestGivenUpAtAGateKeepsToItsHours(t *testing.T) {
	f := testkit.New(t, testkit.At(time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)))
	of := testkit.Subject(decision.DefaultPolicy, "CLM-1-1")
	letter := givenUpAtAGate(t, f, &journal.Arrival{Subject: of, Deadline: f.Now().Add(30 * time.Hour)})
	done, err := f.Journal.Review(t.Context(), &journal.Review{Subject: of, DeadLetter: letter, Reason: "x", By: "ana",
		Policy: opensAtNine(t)})
	testkit.Must(t, err)
	if at, want := done.Episode.NextRetryTime, f.Now().Add(9*time.Hour); !at.Equal(want) {
		t.Errorf("it is sent at %s, want %s", at, want)
	}
}

// TestReportedFailureIsOfTheClaim: a process that gives up by itself leaves a dead letter that tells of the claim what its last
// failure did, or where none came since, the dead letter that a person sent again, though it had never failed.
func TestReportedFailureIsOfTheClaim(t *testing.T) {
	for name, failed := range map[string]bool{"it failed": true, "it was given up at a gate": false} {
		t.Run(name, func(t *testing.T) {
			f := testkit.New(t, testkit.At(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)))
			of, first, deadline := testkit.Subject(decision.DefaultPolicy, "CLM-1-1"), f.Now(), f.Now().Add(30*time.Hour)
			brought := decision.Context{{Variable: "valor", Type: decision.ContextMoney, Value: "1234.56"}}
			if failed {
				a := f.Analysis(of.Policy, of.ID, "TIMEOUT", 0)
				a.ProcessInstanceKey, a.Failure.Context, a.Failure.Deadline = 5, brought, deadline
				_, err := f.Journal.Analyze(t.Context(), a)
				testkit.Must(t, err)
			} else {
				letter := givenUpAtAGate(t, f, &journal.Arrival{Subject: of, Context: brought, Deadline: deadline})
				_, err := f.Journal.Review(t.Context(), &journal.Review{Subject: of, DeadLetter: letter, Reason: "x", By: "ana"})
				testkit.Must(t, err)
			}
			f.Advance(time.Hour)
			_, err := f.Journal.Conclude(t.Context(), &journal.Outcome{Subject: of, ProcessInstanceKey: 5, Team: "ti"})
			testkit.Must(t, err)
			told, _, err := f.Memory.Story(t.Context(), of)
			testkit.Must(t, err)
			d := told.DeadLetters[len(told.DeadLetters)-1]
			if d.Reason != decision.ReasonReported || d.RetryCount != 1 || d.MaxRetries != 5 || d.Cents != 123456 || !slices.Equal(d.Context, brought) ||
				!d.Deadline.Equal(deadline) || !d.FirstFailure.Equal(first) || d.ProcessInstanceKey != 5 || (d.Fingerprint != "") != failed {
				t.Errorf("it leaves %+v", d)
			}
		})
	}
}

// TestWhatIsGivenUpAtAGateHasNoCause: a claim that failed and recovered comes anew, and its gate gives it up before it has failed.
// What a person then sends again has nothing to do with the cause of the failure before, however it ends.
func TestWhatIsGivenUpAtAGateHasNoCause(t *testing.T) {
	for name, end := range map[string]func(f *testkit.Fixture, of journal.Subject, giveUp func()){
		"it succeeds":          func(f *testkit.Fixture, of journal.Subject, _ func()) { f.Succeed(of.Policy, of.ID) },
		"it is given up again": func(_ *testkit.Fixture, _ journal.Subject, giveUp func()) { giveUp() },
		"its process gives up": func(f *testkit.Fixture, of journal.Subject, _ func()) {
			_, err := f.Journal.Conclude(t.Context(), &journal.Outcome{Subject: of, ProcessInstanceKey: 5})
			testkit.Must(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := testkit.New(t, testkit.At(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)))
			of, key := testkit.Subject(decision.DefaultPolicy, "CLM-1-1"), int64(7)
			giveUp := func() {
				key++
				testkit.Must(t, f.Journal.Hold(t.Context(), &journal.Arrival{Subject: of, JobKey: key, ProcessInstanceKey: 5, Destination: "portal",
					Policy: f.Policies()[of.Policy]}))
				_, err := f.Journal.Depart(t.Context(), &journal.Departure{Subject: of, JobKey: key, GiveUp: decision.ReasonDeadline})
				testkit.Must(t, err)
			}
			letters := func() []journal.DeadLetter {
				told, _, err := f.Memory.Story(t.Context(), of)
				testkit.Must(t, err)
				return told.DeadLetters
			}
			f.Fail(of.Policy, of.ID, "TIMEOUT", 0)
			f.Succeed(of.Policy, of.ID)
			giveUp()
			letter := letters()[0].ID
			f.Await(letter)
			_, err := f.Journal.Review(t.Context(), &journal.Review{Subject: of, DeadLetter: letter, Reason: "x", By: "ana"})
			testkit.Must(t, err)
			f.Advance(time.Hour)
			end(f, of, giveUp)
			for _, d := range letters() {
				if d.Fingerprint != "" {
					t.Errorf("a dead letter is said to be of the cause %s", d.Fingerprint)
				}
			}
			causes, err := f.Store.Causes(t.Context(), journal.CauseFilter{}, nil, 9)
			testkit.Must(t, err)
			if len(causes) != 1 || causes[0].Failures != 1 || causes[0].Recovered != 1 {
				t.Errorf("the causes are %+v, want one that failed and recovered once", causes)
			}
		})
	}
}

// TestOrdersAreFollowed: what a person ordered stands until a state follows it. One that was on its way does not, nor does an
// order take the place of the one before.
func TestOrdersAreFollowed(t *testing.T) {
	f := testkit.New(t)
	record := func(b journal.DestinationBody) {
		testkit.Must(t, f.Journal.RecordDestination(t.Context(), "portal", b))
	}
	state := func(version, follows int64, want ...destination.Verb) {
		t.Helper()
		record(journal.DestinationBody{Version: version, State: &destination.State{Phase: destination.Down}, Follows: follows})
		var verbs []destination.Verb
		_, err := f.Memory.Held(t.Context(), func(s *journal.KeyedState) {
			for _, o := range s.State.Destination.Orders {
				verbs = append(verbs, o.Verb)
			}
		})
		testkit.Must(t, err)
		if !slices.Equal(verbs, want) {
			t.Errorf("version %d: %v are to be followed, want %v", version, verbs, want)
		}
	}
	for _, verb := range []destination.Verb{destination.HoldClaims, destination.SendCanary} {
		record(journal.DestinationBody{Command: &destination.Order{Verb: verb, Reason: "maintenance", By: "ana"}})
	}
	end := f.Memory.End().Record
	state(1, 0, destination.HoldClaims, destination.SendCanary)
	state(2, end-1, destination.SendCanary)
	state(3, end)
}

// TestStateOfAnotherIsNotOnesOwn: what became of a commit is not known, and another replica has recorded a state since. Whoever
// tried is told so, or two replicas would act on two states.
func TestStateOfAnotherIsNotOnesOwn(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		one, two := b.journal, b.replica(time.Now)
		state := func(phase destination.Phase) journal.DestinationBody {
			return journal.DestinationBody{Version: 1, State: &destination.State{Phase: phase}}
		}
		b.memory.Fail(1, testkit.Fault{Kind: journal.Ambiguous})
		said := make(chan error, 1)
		go func() { said <- one.RecordDestination(t.Context(), "portal", state(destination.Down)) }()
		synctest.Wait()
		testkit.Must(t, two.RecordDestination(t.Context(), "portal", state(destination.Testing)))
		if err := <-said; !errors.Is(err, journal.ErrStale) {
			t.Errorf("%v, want ErrStale", err)
		}
	})
}
