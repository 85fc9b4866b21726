package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

// trace is what a world did in the words of the specifications (model/), in TLA+.
type trace struct {
	jobs    map[int64][]string  // by job that asks what follows
	gates   map[string][]string // by destination
	letters map[string]ofLetter // by their ids
	claims  map[int64]int       // numbers of the jobs that wait at gates, by destination from 1
	count   map[string]int      // of claims, by destination
	canary  map[string]destination.Canary
	worded  map[int64]bool // claims whose outcome is recorded
}

// ofLetter is the record that a dead letter was born with: the job's, and which of it.
type ofLetter struct {
	job    int64
	record int
}

func newTrace() *trace {
	return &trace{map[int64][]string{}, map[string][]string{}, map[string]ofLetter{}, map[int64]int{}, map[string]int{},
		map[string]destination.Canary{}, map[int64]bool{}}
}

func (t *trace) job(key int64, format string, args ...any) {
	t.jobs[key] = append(t.jobs[key], fmt.Sprintf("<<"+format+">>", args...))
}

func (t *trace) gate(name, format string, args ...any) {
	t.gates[name] = append(t.gates[name], fmt.Sprintf("<<"+format+">>", args...))
}

// attempt tells of an attempt's record; before are those of its job.
func (t *trace) attempt(a *journal.Attempt, before []*journal.Attempt) {
	for n := len(before); n > 0 && a.Revision > 0; n-- {
		if old := before[n-1]; old.Number == a.Number && !a.At.Before(old.NextRetryTime) {
			t.job(a.JobKey, `"pass", %d`, n)
			break
		}
	}
	t.job(a.JobKey, `"record", %s, %s`, truth(a.Revision > 0), truth(!a.ShouldRetry()))
	if a.DeadLetter != "" {
		t.letters[a.DeadLetter] = ofLetter{a.JobKey, len(before) + 1}
	}
	switch a.Tells {
	case destination.TellsAnswered, destination.TellsRateLimited:
		t.word(a.Sent, "answered")
	default:
		t.word(a.Sent, "failed")
	}
}

func truth(b bool) string { return strings.ToUpper(fmt.Sprint(b)) }

// letter tells that a person decided on a dead letter, or that it is open again.
func (t *trace) letter(what, id string) {
	if l, known := t.letters[id]; known {
		t.job(l.job, `"%s", %d`, what, l.record)
	}
}

// traceAnswer tells of an answer to a job: which of its records it carries, 0 for none.
func (s *sim) traceAnswer(what string, j *job, a answer) {
	if j.kind != worker.AnalyzeRetry {
		return
	}
	var told struct{ NextRetryTime, DeadLetterID string }
	_ = json.Unmarshal([]byte(a.vars), &told)
	all := s.attempts[j.key]
	n := len(all)
	for ; n > 0; n-- {
		b := all[n-1]
		if b.ShouldRetry() != a.thrown && b.DeadLetter == told.DeadLetterID &&
			(a.thrown || decision.Instant(b.NextRetryTime) == told.NextRetryTime) {
			break
		}
	}
	s.trail.job(j.key, `"%s", %d`, what, n)
}

// word tells what came of a claim that a gate let go as a canary or in a ramp.
func (t *trace) word(of journal.SentJob, word string) {
	if n := t.claims[of.JobKey]; n > 0 && !t.worded[of.JobKey] {
		t.worded[of.JobKey] = true
		t.gate(of.Destination, `"word", %d, "%s"`, n, word)
	}
}

// held tells that a claim is held, or is no more.
func (t *trace) held(b *journal.GateBody) {
	switch b.Action {
	case journal.GateHeld:
		if t.claims[b.JobKey] == 0 {
			t.count[b.Destination]++
			t.claims[b.JobKey] = t.count[b.Destination]
		}
		t.gate(b.Destination, `"hold", %d`, t.claims[b.JobKey])
	case journal.GateReleased:
		kind := "other"
		if b.Kind == destination.Test {
			kind = "canary"
		}
		t.gate(b.Destination, `"release", %d, "%s"`, t.claims[b.JobKey], kind)
	case journal.GateGivenUp:
		t.gate(b.Destination, `"give up", %d`, t.claims[b.JobKey])
	}
}

// state tells of a destination's recorded state.
func (t *trace) state(name string, at time.Time, of *destination.State) {
	number := func(c destination.Canary) int { return t.claims[c.Claim] }
	old := t.canary[name]
	if number(old) > 0 && (old.Claim != of.Canary.Claim || !old.Sent.Equal(of.Canary.Sent)) &&
		!at.Before(old.Sent.Add(destination.CanaryTimeout)) {
		t.gate(name, `"expire", %d`, number(old))
	}
	t.canary[name] = of.Canary
	t.gate(name, `"record", "%s", %d`, of.Phase, number(of.Canary))
}

// traces are those of worlds, as the specifications list them.
type traces struct {
	jobs, gates []string
	most        int // claims at one gate
}

func (all *traces) add(s *sim) {
	claims := map[string]int{}
	for _, p := range s.processes {
		claims[p.claim]++
	}
	for key, events := range s.trail.jobs {
		j, of := s.jobs[key], s.attempts[key]
		purged := len(of) > 0 && of[len(of)-1].At.Sub(of[0].At) > retention-clocksApart
		if claims[j.claim] == 1 && !j.changed && !purged { // a duplicate is told what another process's job was (R18)
			all.jobs = append(all.jobs, listed(fmt.Sprintf("seed %d, job %d", s.seed, key), events))
		}
	}
	for name, events := range s.trail.gates {
		all.most = max(all.most, s.trail.count[name])
		all.gates = append(all.gates, listed(fmt.Sprintf("seed %d, %s", s.seed, name), events))
	}
}

// write writes the traces to a folder, as modules that the specifications take.
func (all *traces) write(t *testing.T, dir string) {
	for name, list := range map[string][]string{"AnswerTraces": all.jobs, "GateTraces": all.gates} {
		slices.Sort(list)
		text := "---- MODULE " + name + " ----\nEXTENDS Naturals\nTraces == <<\n" + strings.Join(list, ",\n") +
			fmt.Sprintf(">>\nNumbers == 1..%d\n====\n", all.most)
		if err := os.WriteFile(filepath.Join(dir, name+".tla"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func listed(name string, events []string) string {
	return fmt.Sprintf("<<%q, <<%s>>>>", name, strings.Join(events, ", "))
}
