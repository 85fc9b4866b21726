// Package plan shows what a policy means before it is live: when each of its retries comes, as a table or as JSON.
package plan

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/decision"
)

// Plan is a policy's ladder: every retry of a failure that comes again at once after each of them. It is a value; safe
// for concurrent use once made.
type Plan struct {
	Policy      string `json:"policy"`
	Description string `json:"description"`
	// Catalogue is the version of the catalogue that the policy comes from.
	Catalogue string `json:"catalogue"`
	// Destination and FirstFailure of the claim that the plan is of, and when that is closed; empty where none was given.
	Destination  string     `json:"destination,omitempty"`
	FirstFailure *time.Time `json:"firstFailure,omitempty"`
	Closed       []Span     `json:"closed,omitempty"`
	// MaxRetries after the first try (R12).
	MaxRetries int64 `json:"maxRetries"`
	// Backoff in words.
	Backoff string `json:"backoff"`
	// TotalLimit from the first failure on (R20); 0 is none.
	TotalLimit Duration `json:"totalLimit"`
	// Job is what the job itself was taken to say (R15); nil where the policy lets it say nothing.
	Job *Job `json:"job"`
	// Retries in their order, at most 100; never nil.
	Retries []Retry `json:"retries"`
	// NeverScheduled counts the retries that would come later than TotalLimit at the earliest (R20).
	NeverScheduled int64 `json:"neverScheduled"`
	// NotShown counts those behind the hundredth, which wait as long as that.
	NotShown int64 `json:"notShown"`
	// Remarks are sentences for people.
	Remarks []string `json:"remarks"`
}

// Retry is one step of the ladder.
type Retry struct {
	// Number from 1.
	Number int64 `json:"retry"`
	// Wait before it.
	Wait Range `json:"wait"`
	// FromFirst failure on.
	FromFirst Range `json:"fromFirstFailure"`
	// MayPassLimit tells that it comes later than the total limit if the jitter draws long waits; it is not scheduled
	// then.
	MayPassLimit bool `json:"mayPassLimit"`
	// At is when it is nominally made; Why is why it waits for its destination to open, empty where it does not.
	At  *time.Time `json:"at,omitempty"`
	Why string     `json:"closed,omitempty"`
}

// Span is a time from the first failure on.
type Span struct {
	From  Duration `json:"from"`
	Until Duration `json:"until"`
}

// Range of what the jitter may draw, in its middle what it draws by no deviation.
type Range struct {
	Earliest Duration `json:"earliest"`
	Nominal  Duration `json:"nominal"`
	Latest   Duration `json:"latest"`
}

// Duration is a length of time, at least 0. In JSON it is a number of seconds.
type Duration time.Duration

// String returns t as people write it.
func (t Duration) String() string { return Words(time.Duration(t)) }

// MarshalJSON writes seconds.
func (t Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(t).Seconds()) }

// Job is the retry policy that a job was taken to bring, and the variables it brings it in.
type Job struct {
	MaxAttemptsVariable string `json:"maxAttemptsVariable"`
	DelayVariable       string `json:"delayVariable"` // empty where a job may not say
	// MaxAttempts is null where the job brings none.
	MaxAttempts *int64 `json:"maxAttempts"`
	// Delay is null where the job brings none.
	Delay *Duration `json:"delay"`
}

var anyID = regexp.MustCompile("")

// ReadJob reads the retry policy of a job that holds these values, just as the worker reads a job's (R15). An empty
// value is an absent variable. The rejection says which value is wrong.
func ReadJob(p *decision.Policy, maxAttempts, delay decision.Value) (decision.OwnPolicy, *decision.Rejection) {
	ofAnybody := *p
	ofAnybody.IDPattern = anyID
	f, rejection := ofAnybody.Read(decision.Variables{ID: decision.Text("plan"), MaxAttempts: maxAttempts, Delay: delay})
	return f.Own, rejection
}

// Of returns the plan of p for a job that brings own; the zero value for one that brings nothing.
func Of(p *decision.Policy, own decision.OwnPolicy) *Plan {
	maxRetries, backoff := p.Limits(own)
	plan := &Plan{
		Policy: p.Name, Description: p.Description, Catalogue: p.Catalogue, MaxRetries: maxRetries,
		Backoff:    Backoff(&backoff),
		TotalLimit: Duration(p.TotalLimit), Job: jobOf(p, own), Retries: []Retry{}, Remarks: []string{},
	}
	for _, r := range p.Ladder(own) {
		plan.Retries = append(plan.Retries, Retry{
			Number: r.Retry, Wait: Range{Duration(r.Earliest), Duration(r.Nominal), Duration(r.Latest)},
			FromFirst:    Range{Duration(r.SumOfEarliest), Duration(r.SumOfNominal), Duration(r.SumOfLatest)},
			MayPassLimit: p.TotalLimit > 0 && r.SumOfLatest > p.TotalLimit,
		})
	}
	plan.countTheRest()
	plan.remark()
	return plan
}

func jobOf(p *decision.Policy, own decision.OwnPolicy) *Job {
	if p.Own == nil {
		return nil
	}
	j := &Job{MaxAttemptsVariable: p.Own.MaxAttempts, DelayVariable: p.Own.Delay}
	if own.MaxAttempts > 0 {
		j.MaxAttempts = &own.MaxAttempts
	}
	if own.HasDelay {
		delay := Duration(own.Delay)
		j.Delay = &delay
	}
	return j
}

// mostShown is how many retries decision.Policy.Ladder tells at most.
const mostShown = 100

// countTheRest counts the retries that the policy allows and the ladder does not have: it ends at the total limit, or
// at the hundredth.
func (p *Plan) countTheRest() {
	rest := p.MaxRetries - int64(len(p.Retries))
	if len(p.Retries) < mostShown {
		p.NeverScheduled = rest
	} else {
		p.NotShown = rest
	}
}

// remark says in sentences what the figures come to.
func (p *Plan) remark() {
	say := func(sentence string) { p.Remarks = append(p.Remarks, sentence) }
	if p.Job != nil {
		say(p.Job.words())
	}
	if p.MaxRetries == 0 {
		say("No retry: the first failure is final.")
		return
	}
	say("Counted as if every retry failed at once.")
	if p.Closed != nil {
		say("Hours in which " + p.Destination +
			" is closed do not count toward the total limit; retries that wait for it to open are spread.")
	}
	limit := p.TotalLimit.String()
	shown := int64(len(p.Retries))
	if p.NotShown > 0 {
		end := "."
		if p.TotalLimit > 0 {
			end = ", as far as the total limit of " + limit + " lets them be scheduled."
		}
		say(numbered(shown+1, p.MaxRetries) + " wait as long as retry " + strconv.FormatInt(shown, 10) + end)
	}
	if first, last := p.passing(); first > 0 {
		say(numbered(first, last) + " may come later than the total limit of " + limit +
			"; if so, not scheduled: the failure is then final (MAX_RETRIES_EXCEEDED, reason TIME_LIMIT).")
	}
	if p.NeverScheduled > 0 {
		say(numbered(shown+1, p.MaxRetries) + " would come later than the total limit of " + limit + ": never scheduled.")
	}
	if p.TotalLimit > 0 && shown == p.MaxRetries && !p.Retries[shown-1].MayPassLimit {
		say("Every retry comes within the total limit of " + limit + ": the last at most " +
			p.Retries[shown-1].FromFirst.Latest.String() + " after the first failure.")
	}
}

// passing returns the numbers of the first and the last retry that may pass the limit; 0 where none does.
func (p *Plan) passing() (first, last int64) {
	for _, r := range p.Retries {
		if r.MayPassLimit {
			first, last = cmp.Or(first, r.Number), r.Number
		}
	}
	return first, last
}

func numbered(first, last int64) string {
	if first == last {
		return "Retry " + strconv.FormatInt(first, 10)
	}
	return "Retries " + strconv.FormatInt(first, 10) + " to " + strconv.FormatInt(last, 10)
}

// words tell what the job was taken to say.
func (j *Job) words() string {
	var said []string
	if j.MaxAttempts != nil {
		said = append(said, j.MaxAttemptsVariable+" "+strconv.FormatInt(*j.MaxAttempts, 10))
	}
	if j.Delay != nil {
		said = append(said, j.DelayVariable+" "+j.Delay.String())
	}
	if said == nil {
		variables := j.MaxAttemptsVariable
		if j.DelayVariable != "" {
			variables += ", " + j.DelayVariable
		}
		return "Shown for a job that brings no retry policy of its own (" + variables + ")."
	}
	return "Shown for a job that brings " + strings.Join(said, " and ") + "."
}
