package journal_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

var someSubject = journal.Subject{Tenant: "<default>", Policy: "tiss-submission", ID: "CLM-1-1"}

// fullAttempt has no field at its zero value, so that a change of any can be told.
func fullAttempt() journal.Attempt {
	at := time.Date(2025, 1, 12, 10, 0, 0, 123e6, time.UTC)
	return journal.Attempt{
		Record: 1, At: at, Number: 2, Revision: 3, Episode: 4, Ends: journal.Superseded, Identity: journal.Identity{5}, JobKey: 6, ElementInstanceKey: 7, ProcessInstanceKey: 8,
		Rule: decision.RNBIL005, Error: "TIMEOUT", Fingerprint: "f", AnalysedCount: 9, GivenCount: 20, ReceivedAt: at, Took: 11 * time.Microsecond, DeadLetter: "D",
		Decision: decision.Decision{
			Outcome: decision.Retry, Policy: "tiss-submission", SubjectID: "CLM-1-1", ErrorClassification: decision.Transient, Reason: "TIMEOUT",
			MatchedRule: "TIMEOUT", MatchedText: "Timeout", Catalogue: "0123456789ab", RetryCount: 12, MaxRetries: 13, Backoff: decision.Backoff{Delay: 14, Raw: 15, JitterRatio: 0.16, AtMaximum: true},
			NextRetryTime: at.Add(time.Hour), RetryReason: "Transient error, retry 1 of 5", Team: "ti", SuccessProbability: 0.5, AnalysedAt: at, FirstFailure: at,
		},
	}
}

// TestDigestsTellEveryField: whoever changes one is found out, and each comes back as it was.
func TestDigestsTellEveryField(t *testing.T) {
	a, e := fullAttempt(), journal.Entry{Record: 1, Kind: journal.ReviewEntry, At: time.UnixMilli(2), Body: "{}"}
	subject := someSubject
	want, wantEntry := new(journal.EntryOf(subject, &a)).Digest(), e.Digest()
	// The policy and the id stand in the subject, a rejection is no attempt, two follow from the rest, jitter is the metrics'
	// alone, and the chance is no record.
	elsewhere := []string{"Decision.Policy", "Decision.SubjectID", "Decision.Rejection", "AnalysedCount", "ReceivedAt",
		"Decision.Backoff.JitterRatio", "Chance"}
	eachField(reflect.ValueOf(&a).Elem(), "", func(name string) {
		kept := journal.EntryOf(subject, &a)
		if same := kept.Digest() == want; same != slices.Contains(elsewhere, name) {
			t.Errorf("attempt's %s changed, its digest the same: %t", name, same)
		}
		err := kept.Decode()
		if again := journal.EntryOf(subject, kept.Attempt); err != nil || again.Body != kept.Body {
			t.Errorf("attempt's %s is kept in %s, and read as %s (%v)", name, kept.Body, again.Body, err)
		}
	})
	eachField(reflect.ValueOf(&subject).Elem(), "", func(name string) {
		if new(journal.EntryOf(subject, &a)).Digest() == want {
			t.Errorf("the subject's %s changed and the digest did not", name)
		}
	})
	eachField(reflect.ValueOf(&e).Elem(), "", func(name string) {
		if e.Digest() == wantEntry && name != "Forged" && name != "Attempt" { // what a body holds, decoded
			t.Errorf("the entry's %s changed and its digest did not", name)
		}
	})
	if new(journal.EntryOf(subject, &a)).Digest() != want || e.Digest() != wantEntry {
		t.Error("the same record has two digests")
	}
}

// eachField changes one field after the other, tells its name, and changes it back.
func eachField(v reflect.Value, path string, changed func(name string)) {
	for i := range v.NumField() {
		f, name := v.Field(i), strings.TrimPrefix(path+"."+v.Type().Field(i).Name, ".")
		if f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[time.Time]() {
			eachField(f, name, changed)
			continue
		}
		before := reflect.New(f.Type()).Elem()
		before.Set(f)
		switch x := f.Addr().Interface().(type) {
		case *time.Time:
			*x = x.Add(time.Millisecond)
		case *time.Duration:
			*x += time.Microsecond
		case *journal.Identity:
			x[15]++
		case **decision.Rejection:
			*x = &decision.Rejection{}
		case **journal.Attempt:
			*x = &journal.Attempt{}
		default:
			bump(f)
		}
		changed(name)
		f.Set(before)
	}
}

func bump(f reflect.Value) {
	switch f.Kind() {
	case reflect.Int64:
		f.SetInt(f.Int() + 1)
	case reflect.String:
		f.SetString(f.String() + "x")
	case reflect.Bool:
		f.SetBool(!f.Bool())
	case reflect.Slice:
		f.Set(reflect.Append(f, reflect.Zero(f.Type().Elem())))
	case reflect.Float64:
		f.SetFloat(f.Float() / 2)
	default:
		panic("a field of a kind that is new: " + f.Kind().String())
	}
}

// TestDigestsKeepTextsApart: what ends one text cannot begin the next.
func TestDigestsKeepTextsApart(t *testing.T) {
	a := fullAttempt()
	one := new(journal.EntryOf(journal.Subject{Tenant: "a", Policy: "bc", ID: "d"}, &a)).Digest()
	other := new(journal.EntryOf(journal.Subject{Tenant: "ab", Policy: "c", ID: "d"}, &a)).Digest()
	if one == other {
		t.Error("two subjects have one digest")
	}
}

func TestLinkVouchesForEverything(t *testing.T) {
	prev := journal.Digest{1}
	link := journal.Link{At: time.UnixMilli(1000), Digests: []journal.Digest{{2}, {3}}, Messages: []journal.Digest{{7}}}.
		After(journal.Head{Link: 4, Record: 9, Message: 6, Hash: prev})
	if link.Number != 5 || link.First != 10 || link.Message != 7 || link.Hash != link.HashAfter(prev) {
		t.Fatalf("the link after link 4, record 9 is number %d from record %d on", link.Number, link.First)
	}
	for name, change := range map[string]func(l *journal.Link){
		"number":   func(l *journal.Link) { l.Number++ },
		"time":     func(l *journal.Link) { l.At = l.At.Add(time.Millisecond) },
		"first":    func(l *journal.Link) { l.First++ },
		"digest":   func(l *journal.Link) { l.Digests[1][31]++ },
		"order":    func(l *journal.Link) { l.Digests[0], l.Digests[1] = l.Digests[1], l.Digests[0] },
		"missing":  func(l *journal.Link) { l.Digests = l.Digests[:1] },
		"answered": func(l *journal.Link) { l.Answered = []journal.Run{{First: 1, Last: 2}} },
		"until":    func(l *journal.Link) { l.Answered = []journal.Run{{Until: 1}} },
		"message":  func(l *journal.Link) { l.Message++ },
		"sent":     func(l *journal.Link) { l.Messages = []journal.Digest{{8}} },
		"moved":    func(l *journal.Link) { l.Digests, l.Messages = append(l.Digests, l.Messages...), nil },
		"let go":   func(l *journal.Link) { l.LetGo = []journal.Run{{First: 1, Last: 2}} },
		"added":    func(l *journal.Link) { l.Digests = append(l.Digests, journal.Digest{4}) },
	} {
		changed := link
		changed.Digests = slices.Clone(link.Digests)
		if change(&changed); changed.HashAfter(prev) == link.Hash {
			t.Errorf("%s changed and the hash did not", name)
		}
	}
	if link.HashAfter(journal.Digest{}) == link.Hash {
		t.Error("the link before it changed and the hash did not")
	}
	if s := prev.String(); s != "01"+strings.Repeat("00", 31) {
		t.Errorf("a digest reads %s", s)
	}
}

func TestMilli(t *testing.T) {
	for _, at := range []time.Time{{}, time.UnixMilli(1).UTC(), time.Date(2025, 1, 12, 10, 0, 0, 999e6, time.UTC)} {
		if got := journal.FromMilli(journal.Milli(at)); !got.Equal(at) || got.Location() != time.UTC {
			t.Errorf("%s comes back as %s", at, got)
		}
	}
}
