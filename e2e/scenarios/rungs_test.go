package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
)

// system is one of the processes.
type system struct {
	process, policy, idVariable, errorVariable, workType string
	atOnce, recorded                                     string // the end events of a success without and with retries
}

var (
	submissions = system{"SUB_06", "tiss-submission", "claimId", "submissionError", submitClaim, "submitted", "resubmission_recorded"}
	// The others' timers wait for a duration.
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

// variables are those that an instance of the system starts with; extra are further ones.
func (y system) variables(id string, c claim, extra map[string]any) map[string]any {
	all := map[string]any{y.idVariable: id, "scenario": c, "operadora": portalOf(id)}
	maps.Copy(all, extra)
	return all
}

// run starts an instance of a system.
func (s *scenario) run(y system, id string, c claim, extra map[string]any) int64 {
	s.t.Helper()
	return s.create(y.process, y.variables(id, c, extra))
}

// soon is within what an analysis is logged and a timer made.
const soon = time.Second

// rung is what the specification says of the wait before one retry.
type rung struct {
	wait    time.Duration // the least where it is drawn
	written string        // as backoffDuration has it; empty where it is drawn
	minutes int           // rounded up, as backoffMinutes has it; the most where it is drawn
}

// drawn holds what a process knows against a rung that is drawn (R5), and returns it as it came out.
func (s *scenario) drawn(r rung, known map[string]string) rung {
	s.t.Helper()
	if r.written != "" {
		return r
	}
	minutes, err := strconv.Atoi(known["backoffMinutes"])
	wait := time.Duration(minutes) * time.Minute
	if err != nil || wait < r.wait || minutes > r.minutes {
		s.t.Errorf("backoffMinutes is %s, expected %.0f to %d", known["backoffMinutes"], r.wait.Minutes(), r.minutes)
	}
	return rung{wait, fmt.Sprintf("PT%dM", minutes), minutes}
}

// expectRung waits for the timer of the retry after so many, and holds what the process knew when it was made against the
// specification: delay, instant, reason. How many attempts there were, its end tells.
func (s *scenario) expectRung(y system, key int64, made, of int, r rung, class, text string) {
	s.t.Helper()
	var x *timer
	s.awaitAll([]int64{key}, fmt.Sprintf("the timer of retry %d of %s", made+1, y.process), func(i *instance) bool {
		x = i.timerOf(made + 1)
		return x != nil
	})
	r = s.drawn(r, x.known)
	s.expectKnown(fmt.Sprintf("%s %d before retry %d", y.process, key, made+1), x.known, map[string]string{
		"shouldRetry": "true", "retryCount": strconv.Itoa(made + 1), "maxRetries": strconv.Itoa(of),
		"backoffDuration": jsonOf(r.written), "backoffMinutes": strconv.Itoa(r.minutes), "errorClassification": jsonOf(class),
		"retryReason":   jsonOf(fmt.Sprintf("%s error, retry %d of %d", map[string]string{"TRANSIENT": "Transient", "UNKNOWN": "Unknown"}[class], made+1, of)),
		"originalError": jsonOf(text), "retryPolicy": jsonOf(y.policy),
	})
	s.expectWait(x, r.wait)
	next, err := time.Parse(`"2006-01-02T15:04:05.999Z"`, x.known["nextRetryTime"])
	if err != nil {
		s.t.Fatalf("nextRetryTime: %v, expected an instant in UTC with milliseconds (R7)", err)
	}
	s.expectLogged(key, made+1, next.Add(-r.wait), x.known["nextRetryTime"])
}

// expectLogged holds the n-th event of an instance against the retry that it is to tell of: scheduled for next, at that analysis.
func (s *scenario) expectLogged(key int64, n int, analysed time.Time, next string) {
	s.t.Helper()
	line := s.worker.Log.About(s.t, key, n)[n-1]
	said, err := time.Parse(time.RFC3339, line.Text("timestamp"))
	if err != nil || analysed.After(said) || said.Sub(analysed) > soon {
		s.t.Errorf("nextRetryTime less the backoff is %v, expected the instant of the analysis, which was logged at %v (%v)", analysed, said, err)
	}
	if line.Text("event") != "retry_scheduled" || jsonOf(line.Text("nextRetryTime")) != next {
		s.t.Errorf("the worker's log has %v, expected the event retry_scheduled at %s", line, next)
	}
}

var uuid = regexp.MustCompile(`^"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`)

func expectUUID(t *testing.T, value string) {
	t.Helper()
	if !uuid.MatchString(value) {
		t.Errorf("deadLetterId is %s, expected a name-based UUID", value)
	}
}

// timerOf is the timer of the n-th retry; nil while it was not made.
func (i *instance) timerOf(retry int) *timer {
	n := slices.IndexFunc(i.timers, func(x *timer) bool { return x.known["retryCount"] == strconv.Itoa(retry) })
	if n < 0 {
		return nil
	}
	return i.timers[n]
}

// expectWait holds how long a timer waits. The engine notes when it was made a moment after it computed when it is due.
func (s *scenario) expectWait(x *timer, want time.Duration) {
	s.t.Helper()
	if wait := x.due.Sub(x.created); wait < want-soon || wait > want+50*time.Millisecond {
		s.t.Errorf("the timer waits %v, expected %v", wait, want)
	}
}

// wantDead is what a dead letter must say.
type wantDead struct {
	made, of            int64
	class, reason, text string
	team                decision.Team
}

// expectDeadLetter holds what the person in the n-th review (from 0) saw against what it should be, and the attempts
// before it.
func (s *scenario) expectDeadLetter(y system, key int64, n int, want wantDead) {
	s.t.Helper()
	reviews := s.instance(key).reviews
	if len(reviews) <= n {
		s.t.Fatalf("%s: %d reviews, expected %d: %v", y.process, len(reviews), n+1, reviews)
	}
	s.expectKnown(y.process+"'s review", reviews[n], map[string]string{
		"shouldRetry": "false", "retryCount": fmt.Sprint(want.made), "maxRetries": fmt.Sprint(want.of), "retryReason": jsonOf(want.reason),
		"errorClassification": jsonOf(want.class), "originalError": jsonOf(want.text), "retryPolicy": jsonOf(y.policy),
		"responsibleTeam": jsonOf(want.team), "backoffDuration": "null",
	})
	expectUUID(s.t, reviews[n]["deadLetterId"])
	s.expectListed(y, strings.Trim(reviews[n]["deadLetterId"], `"`), want)
}

// expectListed holds what the API says of a dead letter against what it should be.
func (s *scenario) expectListed(y system, id string, want wantDead) {
	s.t.Helper()
	l, err := api{worker: s.worker}.deadLetter(s.t.Context(), id, "", nil)
	testkit.Must(s.t, err)
	class := ""
	if l.ErrorClassification != nil {
		class = *l.ErrorClassification
	}
	if got := (wantDead{l.RetryCount, l.MaxRetries, class, want.reason, l.Error, l.ResponsibleTeam}); got != want || l.Subject.Policy != y.policy ||
		l.ForceNeeded != (want.made >= want.of) {
		s.t.Errorf("%s: the API says of the dead letter %s %+v, expected %+v", y.process, id, l, want)
	}
}

// expectEnd holds how an instance ended, and after how many attempts.
func (s *scenario) expectEnd(y system, key int64, endedBy string, attempts int) {
	s.t.Helper()
	i := s.instance(key)
	if n := len(i.of(y.workType)); i.endedBy != endedBy || n != attempts {
		s.t.Errorf("%s: ended at %s after %d attempts, expected %s after %d", y.process, i.endedBy, n, endedBy, attempts)
	}
}

// expectRemembered holds what the worker's journal has of a subject: its state, what a CRM shows, the attempts'
// outcomes.
func (s *scenario) expectRemembered(y system, id, state, status string, outcomes ...string) {
	s.t.Helper()
	var subject struct {
		State, Status string
		Attempts      []struct{ Outcome string }
	}
	testkit.Must(s.t, json.Unmarshal([]byte(s.worker.get(s.t, s.worker.API+"/api/v1/subjects/"+y.policy+"/"+id)), &subject))
	var got []string
	for _, a := range subject.Attempts {
		got = append(got, a.Outcome)
	}
	if subject.State != state || subject.Status != status || strings.Join(got, " ") != strings.Join(outcomes, " ") {
		s.t.Errorf("the journal has %s as %s (%s) after %v, expected %s (%s) after %v", id, subject.State, subject.Status, got, state, status, outcomes)
	}
}
