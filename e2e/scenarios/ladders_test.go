package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness/bubble"
	"retry-worker/internal/decision"
)

var (
	// claimRungs are those of R5 and R8, in minutes.
	claimRungs = []rung{
		{5 * time.Minute, "", 6}, {8 * time.Minute, "", 12}, {16 * time.Minute, "", 24}, {32 * time.Minute, "", 48}, {64 * time.Minute, "", 96},
	}
	// jobRungs are the delays of R14, and messageRungs those of R13, before the attempts 2, 3 and 4.
	jobRungs     = []rung{{time.Second, "PT1S", 1}, {5 * time.Second, "PT5S", 1}, {25 * time.Second, "PT25S", 1}}
	messageRungs = []rung{{5 * time.Second, "PT5S", 1}, {30 * time.Second, "PT30S", 1}, {5 * time.Minute, "PT5M", 5}}
)

const (
	jobTeam, messageTeam = "ti", "atendimento"

	jobFailure   = "Serviço externo indisponível"
	queueFailure = "Falha ao gerar o relatório"

	exhausted, permanent, timeLimit = "Maximum of %d retries reached", "Permanent error, not retried", "Time limit of 48h reached"
)

// answered is how the Evolution API answers a failed send.
func answered(status int, text string) map[string]any {
	return map[string]any{"sendError": text, "httpStatus": status}
}

// ladderOf is what becomes of one piece of work that fails, with the retries that it makes first.
type ladderOf struct {
	system
	failures []map[string]any // one an attempt
	extra    map[string]any   // further variables
	rungs    []rung           // before each retry
	of       int64            // retries
	class    string
	dead     string // why it is a dead letter in the end; empty: it is none
	team     decision.Team
	discard  bool              // it; else people send it again, with success
	then     map[string]string // variables at the end
	states   string            // of a queued job
}

// ladders are those of claims, WhatsApp messages (TRD-0003), failed jobs and queued jobs (UC-004).
func ladders() (all []ladderOf) {
	claim := func(text string, n int) ladderOf {
		return ladderOf{system: submissions, failures: submissions.fails(repeat(text, n)...).Failures, rungs: claimRungs[:min(n, 5)], of: 5, class: "TRANSIENT"}
	}
	twice, whole, gone, late := claim("HTTP 503 Service Unavailable", 2), claim("TIMEOUT", 6), claim("INSURANCE_EXPIRED", 1), claim("TIMEOUT", 1)
	twice.failures[0]["retryAfter"] = 1 // shorter than the ladder's wait
	twice.then = map[string]string{"retryCount": "2", "deadLetterId": "null", "responsibleTeam": "null", "submissionError": "null", "retryAfter": "null"}
	whole.dead, whole.team = exhausted, "faturamento"
	whole.then = map[string]string{"reviewDecision": `"reprocess"`, "retryCount": "6", "submissionError": "null"}
	gone.rungs, gone.dead, gone.team, gone.discard = nil, permanent, "cadastro", true
	gone.then = map[string]string{"reviewDecision": `"discard"`, "submissionError": `"INSURANCE_EXPIRED"`}
	// R20: the shortest backoff would end beyond 48 h from the first failure.
	late.rungs, late.dead, late.team, late.discard = nil, timeLimit, "faturamento", true
	late.extra = map[string]any{"lastSubmissionTime": bubble.Begin.Add(-48*time.Hour + 4*time.Minute)}
	all = append(all, twice, whole, whole, whole, gone, late, ladderOf{system: submissions})
	for n := range 4 {
		all = append(all, ladderOf{system: failedJob, failures: failedJob.fails(repeat(jobFailure, n)...).Failures,
			rungs: jobRungs[:n], of: 3, class: "UNKNOWN"})
	}
	down := answered(503, "Service Unavailable")
	fourTimes := ladderOf{system: whatsapp, failures: []map[string]any{down, down, down, down}, rungs: messageRungs, of: 3,
		class: "TRANSIENT", dead: exhausted, team: messageTeam}
	again, letGo := fourTimes, fourTimes
	again.then = map[string]string{"reviewDecision": `"reprocess"`, "retryCount": "4", "sendError": "null", "httpStatus": "null"}
	letGo.discard = true
	all = append(all, again, letGo, ladderOf{system: whatsapp})
	return append(append(all, classified()...), queued()...)
}

// classified are messages of R13: 400 and 404 are permanent; 429, 500, 502, 503, 504 and a timeout transient; anything else
// is unknown and retried.
func classified() (all []ladderOf) {
	add := func(class string, failure map[string]any) {
		l := ladderOf{system: whatsapp, failures: []map[string]any{failure}, rungs: messageRungs[:1], of: 3, class: class}
		if class == "PERMANENT" {
			l.rungs, l.dead, l.team, l.discard = nil, permanent, messageTeam, true
		}
		all = append(all, l)
	}
	for _, status := range []int{400, 404, 429, 500, 502, 503, 504} {
		class := map[bool]string{true: "PERMANENT", false: "TRANSIENT"}[status < 429]
		add(class, answered(status, "recusado"))
		add(class, map[string]any{"sendError": "Request failed with status code " + strconv.Itoa(status)})
	}
	add("TRANSIENT", map[string]any{"sendError": "timeout of 30000ms exceeded"})
	add("UNKNOWN", map[string]any{"sendError": "instância desconectada"})
	add("UNKNOWN", answered(418, "I'm a teapot"))
	return all
}

// What a queued job goes through for one run, from the look at its dependencies on.
const (
	runs   = "WAITING PENDING RUNNING"
	again  = " DELAYED "
	failed = " FAILED"
	done   = " COMPLETED"
)

// queued are jobs that bring their own policy: maxAttempts and delayBetweenAttempts, as ISO 8601 or in milliseconds. Without
// one, or where the error says that it is not retryable, the first failure is final (FA-004.1, FA-004.2).
func queued() (all []ladderOf) {
	add := func(failures, of int, delay any, r rung, l ladderOf) {
		l.system, l.failures, l.of = jobQueue, jobQueue.fails(repeat(queueFailure, failures)...).Failures, int64(of)
		if l.rungs = slices.Repeat([]rung{r}, min(failures, of)); l.class == "" {
			l.class = "UNKNOWN"
		}
		if l.team = jobTeam; delay != nil {
			l.extra = map[string]any{"maxAttempts": of + 1, "delayBetweenAttempts": delay}
		}
		all = append(all, l)
	}
	final := func(l *ladderOf, of int) { // the last failure says so
		last := len(l.failures) - 1
		l.failures[last]["nonRetryable"], l.rungs, l.of = true, l.rungs[:last], int64(of)
	}
	short, long, soon := rung{20 * time.Second, "PT20S", 1}, rung{2 * time.Minute, "PT2M", 2}, rung{10 * time.Second, "PT10S", 1}
	add(2, 2, "PT20S", short, ladderOf{states: runs + again + runs + again + runs + done})
	add(3, 2, 45_500, rung{45500 * time.Millisecond, "PT45.5S", 1},
		ladderOf{dead: exhausted, states: runs + again + runs + again + runs + failed + again + runs + done})
	add(1, 1, "PT2M", long, ladderOf{states: runs + again + runs + done})
	add(1, 0, "PT2M", long, ladderOf{dead: exhausted, states: runs + failed + again + runs + done})
	add(1, 0, nil, long, ladderOf{dead: exhausted, discard: true, states: runs + failed})
	add(1, 8, "PT10S", soon, ladderOf{dead: permanent, states: runs + failed + again + runs + done})
	final(&all[len(all)-1], 8)
	add(2, 8, "PT10S", soon, ladderOf{dead: permanent, states: runs + again + runs + failed + again + runs + done})
	final(&all[len(all)-1], 8)
	add(0, 0, nil, long, ladderOf{states: runs + done})
	return all
}

// TestLadders: each piece of work fails, waits and ends as its document says.
func TestLadders(t *testing.T) {
	eachProtocol(t, func(_ *testing.T, s *world) {
		all := ladders()
		var keys []int64
		want := counts{}
		for n := range all {
			l := &all[n]
			c := claim{Failures: l.failures, Review: review{Discard: l.discard}}
			keys = append(keys, s.run(l.system, l.id(s, n), c, l.extra))
			l.countInto(want)
		}
		s.clock.MoveTo(s.begun.Add(4 * time.Hour))
		for n := range all {
			s.expectLadder(&all[n], keys[n], all[n].id(s, n))
		}
		s.expectCounts(want)
		s.done("ladders", "%d: retried, dead at once, sent again, let go", len(all))
	})
}

// id is that of the n-th piece of work.
func (l *ladderOf) id(s *world, n int) string {
	return s.id(map[bool]string{true: "CLM", false: "JOB"}[l.system == submissions], n)
}

// countInto adds what the engine is to do.
func (l *ladderOf) countInto(c counts) {
	attempts := len(l.failures)
	if !l.discard {
		attempts++
		c[l.workType+" completed"]++
	}
	c[l.workType+" error thrown"] += len(l.failures)
	if l.system == jobQueue {
		c[checkDependencies+" completed"] += attempts
	}
	c["analyze-retry completed"] += len(l.rungs)
	c["timers triggered"] += len(l.rungs)
	c["processes completed"]++
	if l.dead != "" {
		c["analyze-retry error thrown"]++
		c["retry-review completed"]++
		if !l.discard {
			c["timers triggered"]++
		}
	}
	if len(l.failures) > 0 && !l.discard {
		c["record-retry-outcome completed"]++
	}
}

// expectLadder holds what became of a piece of work that has ended.
func (s *world) expectLadder(l *ladderOf, key int64, id string) {
	s.t.Helper()
	var text string
	if len(l.failures) > 0 {
		text = l.failures[len(l.failures)-1][l.errorVariable].(string)
	}
	for made, r := range l.rungs {
		s.expectRung(l.system, key, made, int(l.of), r, l.class, text)
	}
	outcomes := repeat("RETRY", len(l.rungs))
	switch l.dead {
	case exhausted, timeLimit:
		outcomes = append(outcomes, "MAX_RETRIES_EXCEEDED")
		reason := strings.Replace(l.dead, "%d", fmt.Sprint(l.of), 1)
		s.expectDeadLetter(l.system, key, 0, wantDead{int64(len(l.rungs)), l.of, l.class, reason, text, l.team})
	case permanent:
		outcomes = append(outcomes, "PERMANENT_ERROR")
		s.expectDeadLetter(l.system, key, 0, wantDead{int64(len(l.rungs)), l.of, "PERMANENT", permanent, text, l.team})
	}
	switch n := len(l.failures); {
	case n == 0:
		s.expectEnd(l.system, key, l.atOnce, 1)
	case l.discard:
		s.expectEnd(l.system, key, "discarded", n)
		s.expectRemembered(l.system, id, "discarded", "descartada", outcomes...)
	default:
		s.expectEnd(l.system, key, l.recorded, n+1)
		s.expectRemembered(l.system, id, "recovered", "entregue", outcomes...)
	}
	s.expectVariables(s.instance(key), l.then)
	if l.states != "" {
		s.expectStates(key, l.states)
	}
}
