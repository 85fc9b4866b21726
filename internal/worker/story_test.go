package worker_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
	"retry-worker/internal/text"
	"retry-worker/internal/worker"
)

// TestStories plays testdata/*.txt, whose README.md has the commands: jobs, what they are answered, and what is logged
// and counted.
func TestStories(t *testing.T) {
	golden.Stories(t, "testdata", func(t *testing.T, file string) {
		bubble(t, func(t *testing.T) { golden.Story(t, file, (&script{t: t}).play) })
	})
}

// script is a worker of each rule, with a journal of its own. What they are told is the same; what they do must be, but
// for the names of their events and the time that an analysis may take.
type script struct {
	t *testing.T
	inForce
	sides []*side
	fresh bool // no job has come
}

// side is one of the two.
type side struct {
	*script
	rule    decision.BusinessRule
	now     func() time.Time
	store   *testkit.Memory
	journal *journal.Journal
}

func (s *script) play(command string) string {
	verb, rest, _ := strings.Cut(command, " ")
	switch verb {
	case "analyze", "outcome":
		parts := strings.Split(" "+rest, " | ")
		a, err := golden.Parse(parts[0])
		testkit.Must(s.t, err)
		return s.job(verb, a, spread(parts[1]), spread(parts[2]))
	}
	return golden.Play(command, map[string]func(*golden.Arguments) (string, error){
		"new": s.renew, "catalogue": s.catalogue, "fetches": s.fetches, "wait": golden.Wait, "store": s.faults,
		"subject": s.subject,
	})
}

// renew begins with empty journals, at the instant of the start.
func (s *script) renew(*golden.Arguments) (string, error) {
	began := time.Now()
	now := func() time.Time { return analysed.Add(time.Since(began)) }
	s.fresh, s.sides = true, nil
	s.reload(policies())
	for _, rule := range []decision.BusinessRule{decision.RNBIL005, decision.RNBIL004} {
		store := testkit.NewMemory()
		s.sides = append(s.sides, &side{s, rule, now, store, testkit.StartJournal(s.t, store, now)})
	}
	return "", nil
}

// catalogue puts the named policies in force, as a catalogue of that version. talkative's id has the name that id says.
func (s *script) catalogue(a *golden.Arguments) (string, error) {
	all := policies()
	p := talkative()
	if id := a.Named["id"]; id != "" {
		p.IDVariable = id
	}
	all[p.Name] = p
	maps.DeleteFunc(all, func(name string, p *decision.Policy) bool {
		p.Catalogue = a.Named["version"]
		return !a.Words[name]
	})
	s.reload(all)
	return "", nil
}

// talkative is a policy whose rules match what stands around their words, reads a status, and lets a job bring its own
// retry policy.
func talkative() *decision.Policy {
	p := policies()["quick"]
	p.Name, p.IDVariable, p.ErrorVariable, p.HTTPStatusVariable = "talkative", "jobId", "jobError", "httpStatus"
	p.Own = &decision.OwnVariables{MaxAttempts: "maxAttempts", Delay: "delayBetweenAttempts", NonRetryable: "nonRetryable"}
	p.MaxRetries = 0 // without a retry policy of the job's own (R15)
	p.Rules = decisiontest.Rules(
		classify.Rule{Name: "patient", Class: decision.Permanent, Reason: "INVALID_PATIENT_DATA", Team: "cadastro",
			Hint: text.Translated{Portuguese: "corrija o cadastro"}, Patterns: []string{`paciente .{0,200} .{0,100}recusado`}},
		classify.Rule{Name: "missing", Class: decision.Permanent, Reason: "NOT_FOUND", Team: "ti", Statuses: []string{"404"}},
		decisiontest.Transient("TIMEOUT"),
	)
	return p
}

// begin activates a job of that verb.
func (d *side) begin(verb string, hooks worker.Hooks, log *zap.Logger) worker.Activation {
	return worker.NewHandlers(worker.Options{Policies: d.policies, Memory: d.journal, Now: d.now, Hooks: hooks, Log: log}).
		Begin(d.jobType(verb))
}

// fetches tells which variables are asked for.
func (s *script) fetches(*golden.Arguments) (string, error) {
	return s.both(func(d *side) (said string) {
		for _, verb := range []string{"analyze", "outcome"} {
			said += verb + ": " + strings.Join(d.begin(verb, worker.NoHooks(), nopLog).Variables, " ") + "\n"
		}
		return said
	}), nil
}

// faults has the stores be down, up or slow, or take no transaction within the time of an analysis; the last
// of those is saved.
func (s *script) faults(a *golden.Arguments) (string, error) {
	for _, d := range s.sides {
		switch a.First {
		case "slow":
			d.store.Delay(300 * time.Millisecond)
		case "hangs":
			if d.rule == decision.RNBIL005 { // whose time is twice as long as a try's
				d.store.Fail(1, testkit.Fault{Hang: true})
			}
			d.store.Fail(1, testkit.Fault{Kind: journal.Ambiguous, After: true, Hang: true})
		default:
			d.store.SetDown(a.First == "down")
		}
	}
	return "", nil
}

// subject tells what is remembered.
func (s *script) subject(a *golden.Arguments) (string, error) {
	return s.both(func(d *side) string {
		told, _, err := d.store.Story(s.t.Context(), testkit.Subject(decision.DefaultPolicy, a.First))
		testkit.Must(s.t, err)
		said := fmt.Sprintf("%d records\n", d.store.End().Record)
		for _, e := range told.Episodes {
			said += fmt.Sprintln("episode", e.State)
		}
		for _, l := range told.DeadLetters {
			said += fmt.Sprintf("dead letter of %s: %s, %d of %d retries\n", l.Team, l.Reason, l.RetryCount, l.MaxRetries)
		}
		return said
	}), nil
}

// both returns what the sides say to something at once: that of RN-BIL-005, and the other's where it is not the same.
func (s *script) both(ask func(d *side) string) string {
	var said [2]string
	var asking sync.WaitGroup
	for i, d := range s.sides {
		asking.Go(func() { said[i] = ask(d) })
	}
	asking.Wait()
	of004 := strings.NewReplacer(`event="retry_scheduled"`, `event="submission_retry_scheduled"`,
		`jobType="analyze-retry"`, `jobType="retry-submission-backoff"`)
	if said[1] != of004.Replace(said[0]) {
		return said[0] + "by RN-BIL-004:\n" + said[1]
	}
	return said[0]
}

// job brings a job, whose answer the engine takes unless it is said not to; with a version, the policies become others
// behind its activation.
func (s *script) job(verb string, a *golden.Arguments, headers, variables string) string {
	fresh, handlers := s.fresh, map[*side]worker.Handler{}
	told, logged := map[*side]*tally{}, map[*side]*observer.ObservedLogs{}
	for _, d := range s.sides {
		core, logs := observer.New(zapcore.DebugLevel)
		told[d], logged[d] = newTally(), logs
		handlers[d] = d.begin(verb, told[d].hooks(), zap.New(core)).Handler
	}
	if a.Named["version"] != "" {
		_, _ = s.catalogue(a)
	}
	s.fresh = false
	return s.both(func(d *side) string {
		j := d.asks(verb, a, headers, variables)
		began := time.Now()
		r := handlers[d](context.Background(), &j)
		said := ""
		if took := time.Since(began); took > time.Second {
			said = fmt.Sprintf("after %s ", took)
		}
		if r.Taken != nil && !a.Words["untaken"] {
			r.Taken()
		}
		said += rendered(r) + told[d].told()
		for _, line := range logged[d].All() {
			said += line.Level.String() + " " + line.Message + told[d].fields(s.t, line.ContextMap()) + "\n"
			if verb == "analyze" && fresh && r.Action != worker.Failed {
				s.wantDryRun(headers, variables, line.ContextMap()["matchedText"])
			}
		}
		if verb == "analyze" && r.Action != worker.Released || r.Action == worker.Failed {
			wantContract(s.t, r)
		}
		wantNoPersonalData(s.t, &running{logs: logged[d]}, r.Failure.Message+" "+r.Error.Message, "529.982.247-25")
		return runs.ReplaceAllStringFunc(said, func(run string) string {
			unit, _, _ := strings.Cut(run[1:], run[:1])
			return fmt.Sprintf("(%s)*%d", run[:1]+unit, len(run)/(1+len(unit)))
		})
	})
}

func (d *side) jobType(verb string) string {
	switch {
	case verb == "outcome":
		return worker.RecordRetryOutcome
	case d.rule == decision.RNBIL004:
		return worker.RetrySubmissionBackoff
	}
	return worker.AnalyzeRetry
}

// asks returns the job of a command.
func (d *side) asks(verb string, a *golden.Arguments, headers, variables string) worker.Job {
	j := job(d.jobType(verb), headers, variables)
	j.Key += a.Number("key")
	j.ElementInstanceKey += a.Number("element")
	j.ProcessInstanceKey += a.Number("instance")
	if tenant := a.Named["tenant"]; tenant != "" {
		j.TenantID = tenant
	}
	return j
}

// In a story ⏎ ends a line of a variable, (x)*3000 is so many x, and - is nothing at all.
var (
	repeated = regexp.MustCompile(`\(([^()]{1,2})\)\*(\d+)`)
	runs     = regexp.MustCompile(`x{100,}|(?:x ){100,}|(?:a ){90,}`)
)

// spread returns variables as they are meant.
func spread(text string) string {
	if text == "-" {
		return ""
	}
	return repeated.ReplaceAllStringFunc(strings.ReplaceAll(text, "⏎", "\n"), func(one string) string {
		m := repeated.FindStringSubmatch(one)
		n, _ := strconv.Atoi(m[2])
		return strings.Repeat(m[1], n)
	})
}

// rendered writes a reply so that a person can judge it.
func rendered(r worker.Reply) string {
	indented := func(object string) string {
		var b bytes.Buffer
		if err := json.Indent(&b, []byte(object), "", "  "); err != nil {
			return "no JSON: " + object
		}
		return b.String()
	}
	switch r.Action {
	case worker.Completed:
		return "completed " + indented(r.Variables) + "\n"
	case worker.Thrown:
		return fmt.Sprintf("bpmn_error %s: %s %s\n", r.Error.Code, r.Error.Message, indented(r.Error.Variables))
	default:
		f := r.Failure
		return fmt.Sprintf("%s with %d retries, after %s\n%s\n", r.Action, f.Retries, f.Backoff, f.Message)
	}
}

// told tells what was counted.
func (c *tally) told() string {
	said := "counted"
	for i, n := range []int{len(c.decided), len(c.ended), c.replayed, c.oversized, len(c.timedOut)} {
		said += strings.Repeat(" "+[]string{"decided", "ended", "replayed", "oversized", "timed out"}[i], n)
	}
	for _, code := range c.rejected {
		said += " rejected " + string(code)
	}
	return said + "\n"
}

// fields tells the fields of a line. How long the analysis took is what was counted.
func (c *tally) fields(t *testing.T, all map[string]any) (said string) {
	if ms, there := all["executionTimeMs"]; there && ms != float64(c.took.Microseconds())/1000 {
		t.Errorf("executionTimeMs is %v, and %s were counted", ms, c.took)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch value := all[name].(type) {
		case string:
			said += fmt.Sprintf(" %s=%q", name, value)
		default:
			said += fmt.Sprintf(" %s=%v", name, value)
		}
	}
	return said
}

// wantDryRun fails unless a dry run of the first job of a claim shows the same.
func (s *script) wantDryRun(headers, variables string, matched any) {
	s.t.Helper()
	named, values := map[string]string{}, map[string]json.RawMessage{}
	_ = json.Unmarshal([]byte(headers), &named)
	testkit.Must(s.t, json.Unmarshal([]byte(variables), &values))
	p, _ := s.policies().Find(named["retryPolicy"])
	of := func(name string) decision.Value { return decision.Value(values[name]) }
	dry, rejection := worker.DryRun(s.policies(), p.Name, of, analysed, nil)
	if shown := *cmp.Or(dry.MatchedText, new("")); rejection != nil || shown != matched {
		s.t.Errorf("of %s a dry run shows %q (%v), the log %q", variables, shown, rejection, matched)
	}
}
