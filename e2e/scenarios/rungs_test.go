package scenarios

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// system is one of the processes beside SUB_06, whose timers wait for a duration.
type system struct {
	process, policy, idVariable, errorVariable, workType string
	atOnce, recorded                                     string // the end events of a success without and with retries
}

var (
	whatsapp  = system{"WHATSAPP_MESSAGE", "whatsapp-message", "messageId", "sendError", sendMessage, "sent", "resend_recorded"}
	failedJob = system{"FAILED_JOB", "failed-job", "jobId", "jobError", runJob, "completed", "retry_recorded"}
	jobQueue  = system{"JOB_QUEUE", "job-queue", "jobId", "jobError", runQueuedJob, "completed", "retry_recorded"}
)

// fails is work of the system that fails with texts, one a try.
func (y system) fails(texts ...string) claim {
	var c claim
	for _, text := range texts {
		c.Failures = append(c.Failures, map[string]any{y.errorVariable: text})
	}
	return c
}

// repeat is a text n times.
func repeat(text string, n int) []string { return slices.Repeat([]string{text}, n) }

// play starts an instance of a system. extra are further variables.
func (s *scene) play(y system, id string, c claim, extra map[string]any) int64 {
	s.t.Helper()
	variables := map[string]any{y.idVariable: id, "scenario": c}
	for name, value := range extra {
		variables[name] = value
	}
	return s.create(y.process, variables)
}

// rung is what the specification says of the wait before one retry.
type rung struct {
	wait    time.Duration
	written string // as backoffDuration has it
	minutes int    // rounded up, as backoffMinutes has it
}

// expectRung waits for the timer of the retry after so many, and holds what the process then knows against the
// specification: attempts, delay, instant, reason.
func (s *scene) expectRung(y system, key int64, made, of int, r rung, class, text string) {
	s.t.Helper()
	s.awaitAll([]int64{key}, fmt.Sprintf("the timer of retry %d of %s", made+1, y.process), func(i *instance) bool {
		return i.waiting() && i.variables["retryCount"] == strconv.Itoa(made+1)
	})
	i := s.instance(key)
	if n := len(i.of(y.workType)); n != made+1 {
		s.t.Errorf("%s: %d attempts before retry %d, expected %d", y.process, n, made+1, made+1)
	}
	s.expectVariables(i, map[string]string{
		"shouldRetry": "true", "retryCount": strconv.Itoa(made + 1), "maxRetries": strconv.Itoa(of),
		"backoffDuration": jsonOf(r.written), "backoffMinutes": strconv.Itoa(r.minutes), "errorClassification": jsonOf(class),
		"retryReason":   jsonOf(fmt.Sprintf("%s error, retry %d of %d", map[string]string{"TRANSIENT": "Transient", "UNKNOWN": "Unknown"}[class], made+1, of)),
		"originalError": jsonOf(text), "retryPolicy": jsonOf(y.policy),
	})
	s.expectShortInstant(i, made, r)
}

// expectShortInstant holds nextRetryTime against R7, with milliseconds, and the timer against the delay.
func (s *scene) expectShortInstant(i instance, made int, r rung) {
	s.t.Helper()
	timer := i.timers[len(i.timers)-1]
	s.expectWait(timer, r.wait)
	next, err := time.Parse(`"2006-01-02T15:04:05.999Z"`, i.variables["nextRetryTime"])
	if err != nil {
		s.t.Fatalf("nextRetryTime: %v, expected an instant in UTC with milliseconds (R7)", err)
	}
	line := s.worker.log.about(s.t, i.key, made+1)[made]
	said, err := time.Parse(time.RFC3339, line.text("timestamp"))
	if analysed := next.Add(-r.wait); err != nil || analysed.After(said) || said.Sub(analysed) > 2*time.Second {
		s.t.Errorf("nextRetryTime − %v is %v, expected the instant of the analysis, which was logged at %v (%v)", r.wait, analysed, said, err)
	}
	if line.text("event") != "retry_scheduled" || jsonOf(line.text("nextRetryTime")) != i.variables["nextRetryTime"] {
		s.t.Errorf("the worker's log has %v, expected the event retry_scheduled at %s", line, i.variables["nextRetryTime"])
	}
}

// expectWait holds how long a timer waits. The broker notes when it was made a moment after it computed when it is due.
func (s *scene) expectWait(x *timer, want time.Duration) {
	s.t.Helper()
	const early, late = 500 * time.Millisecond, 50 * time.Millisecond
	if wait := x.due.Sub(x.created); wait < want-early || wait > want+late {
		s.t.Errorf("the timer waits %v, expected %v", wait, want)
	}
}

// fire moves the broker's clock to where the newest timer of each instance fires, and waits until it has, not before
// its time.
func (s *scene) fire(keys ...int64) {
	s.t.Helper()
	newest := make(map[int64]int)
	var last time.Time
	for _, key := range keys {
		i := s.instance(key)
		newest[key] = len(i.timers) - 1
		if due := i.timers[newest[key]].due; due.After(last) {
			last = due
		}
	}
	s.advanceTo(last)
	s.awaitAll(keys, "the timer to fire", func(i *instance) bool { return !i.timers[newest[i.key]].triggered.IsZero() })
	for _, key := range keys {
		if x := s.instance(key).timers[newest[key]]; x.triggered.Before(x.due) {
			s.t.Errorf("the timer due at %v fired at %v", x.due, x.triggered)
		}
	}
}

// letter is what a dead letter must say.
type letter struct {
	made, of            int
	class, reason, text string
	team                string
}

// expectLetter holds what the person in the n-th review (from 0) saw against what it should be, and the attempts
// before it.
func (s *scene) expectLetter(y system, key int64, n int, want letter) {
	s.t.Helper()
	reviews := s.instance(key).reviews
	if len(reviews) <= n {
		s.t.Fatalf("%s: %d reviews, expected %d: %v", y.process, len(reviews), n+1, reviews)
	}
	for name, value := range map[string]string{
		"shouldRetry": "false", "retryCount": strconv.Itoa(want.made), "maxRetries": strconv.Itoa(want.of), "retryReason": jsonOf(want.reason),
		"errorClassification": jsonOf(want.class), "originalError": jsonOf(want.text), "retryPolicy": jsonOf(y.policy),
		"responsibleTeam": jsonOf(want.team), "backoffDuration": "null",
	} {
		if reviews[n][name] != value {
			s.t.Errorf("%s: the review sees %s %s, expected %s", y.process, name, reviews[n][name], value)
		}
	}
	expectUUID(s.t, reviews[n]["deadLetterId"])
	s.expectListed(y, strings.Trim(reviews[n]["deadLetterId"], `"`), want)
}

// expectListed holds what the API says of a dead letter against what it should be.
func (s *scene) expectListed(y system, id string, want letter) {
	s.t.Helper()
	a, err := desk{worker: s.worker}.letter(s.t.Context(), id, "", nil)
	s.must(err)
	l := a.deadLetter
	class := ""
	if l.ErrorClassification != nil {
		class = *l.ErrorClassification
	}
	if got := (letter{l.RetryCount, l.MaxRetries, class, want.reason, l.Error, l.ResponsibleTeam}); got != want || l.Subject.Policy != y.policy ||
		l.ForceNeeded != (want.made >= want.of) {
		s.t.Errorf("%s: the API says of the dead letter %s %+v, expected %+v", y.process, id, l, want)
	}
}

// expectEnd holds how an instance ended, and after how many attempts.
func (s *scene) expectEnd(y system, key int64, endedBy string, attempts int) {
	s.t.Helper()
	i := s.instance(key)
	if n := len(i.of(y.workType)); i.endedBy != endedBy || n != attempts {
		s.t.Errorf("%s: ended at %s after %d attempts, expected %s after %d", y.process, i.endedBy, n, endedBy, attempts)
	}
}

// expectRemembered holds what the worker's journal has of a subject: its state, what a CRM shows, the attempts'
// outcomes.
func (s *scene) expectRemembered(y system, id, state, status string, outcomes ...string) {
	s.t.Helper()
	var subject struct {
		State, Status string
		Attempts      []struct{ Outcome string }
	}
	s.must(json.Unmarshal([]byte(s.ask("/api/v1/subjects/"+y.policy+"/"+id)), &subject))
	var got []string
	for _, a := range subject.Attempts {
		got = append(got, a.Outcome)
	}
	if subject.State != state || subject.Status != status || strings.Join(got, " ") != strings.Join(outcomes, " ") {
		s.t.Errorf("the journal has %s as %s (%s) after %v, expected %s (%s) after %v", id, subject.State, subject.Status, got, state, status, outcomes)
	}
}
