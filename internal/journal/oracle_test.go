package journal_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
)

// oracle re-states "Identity and episodes, exactly" and R17 for one subject, naively: it keeps everything that
// ever happened in lists, and asks of each sentence of the text whether it applies.
type oracle struct {
	attempts []told
	episodes []stretch
	letters  []string // states
	told     []process
	answers  []notice // on their way
}

// process is what is known of who waits for a review: the key of its job, and what became of the answer.
type process struct {
	instance int64
	job      int64
	delivery string
}

// notice to a process.
type notice struct {
	letter   int
	job      int64
	decision string
}

// told is what was told to a job.
type told struct {
	identity     string
	uncounted    string // identity without the count
	job, element int64
	answered     bool
	count        int64 // analysed
	retry        bool
	outcome      decision.Outcome
	class        decision.ErrorClassification
	delay        time.Duration
	next, first  time.Time
	letter       int // −1 for none
	episodes     int // begun with it
}

// stretch is an episode.
type stretch struct {
	state       string
	instance    int64
	retries     int64
	next, first time.Time
	letter      int   // −1 for none
	before      int64 // the retries before a person sent it again
}

func (o *oracle) open() *stretch {
	if n := len(o.episodes); n > 0 && slices.Contains([]string{"scheduled", "dead", "reprocessing"}, o.episodes[n-1].state) {
		return &o.episodes[n-1]
	}
	return nil
}

// close ends the open episode; what is said of its dead letter follows.
func (o *oracle) close(state, letter string) {
	e := o.open()
	if e.letter >= 0 {
		o.settle(e.letter, letter)
	}
	e.state, e.letter, e.next = state, -1, time.Time{}
}

// settle changes a dead letter's state because something newer happened: "a process that waits must not hang".
func (o *oracle) settle(i int, state string) {
	waits := o.letters[i] == "open" && o.waits(i)
	o.letters[i] = state
	if waits {
		o.answer(i, "discard")
	}
}

func (o *oracle) waits(i int) bool { return o.told[i].job != 0 && o.told[i].delivery != "nobody" }

func (o *oracle) answer(i int, decision string) {
	if o.told[i].delivery != "taken" {
		o.told[i].delivery = "pending"
	}
	o.answers = append(o.answers, notice{i, o.told[i].job, decision})
}

// reports is an instance that says how its work went on: it has taken what a person decided there.
func (o *oracle) reports(instance int64) {
	e := o.open()
	if e == nil || e.letter < 0 || o.letters[e.letter] != "reprocessing" {
		return
	}
	if p := &o.told[e.letter]; p.instance == instance && p.delivery == "pending" {
		p.delivery = "taken"
	}
}

// createDeadLetter adds a dead letter of an instance.
func (o *oracle) bear(state string, instance int64) int {
	o.letters, o.told = append(o.letters, state), append(o.told, process{instance: instance})
	return len(o.letters) - 1
}

// verdictOf is what a process is told about a dead letter that is open no more.
func (o *oracle) verdictOf(i int) string {
	if o.letters[i] == "reprocessing" {
		return "reprocess"
	}
	return "discard"
}

// verdict tells what an error text is, by how the generator made it.
func verdict(c *call) decision.ErrorClassification {
	return map[string]decision.ErrorClassification{
		"TIMEOUT": decision.Transient, "HTTP 503": decision.Transient, "DUPLICATE_CLAIM": decision.Permanent,
		"INSURANCE_EXPIRED after TIMEOUT": decision.Permanent, "what is this": decision.Unknown, "": "",
	}[c.Error]
}

const limit, total = 5, 48 * time.Hour

func (o *oracle) analyze(c *call, now time.Time) string {
	identity := fmt.Sprint(c.Job, c.Element, c.Instance, c.Count, c.Submitted, c.Error)
	same := -1
	for i := range o.attempts {
		if o.attempts[i].identity == identity {
			same = i
		}
	}
	uncounted := fmt.Sprint(c.Job, c.Element, c.Instance, c.Submitted, c.Error)
	if n := len(o.attempts); n > 0 && same < n-1 {
		// "the count that the answer wrote before the error was thrown: the same, while its dead letter is open"
		if a := &o.attempts[n-1]; !a.retry && a.uncounted == uncounted && a.count == int64(c.Count) {
			same = n - 1
			a.answered = a.answered || o.letters[a.letter] != "open"
		}
	}
	// "Same identity → the recorded decision … an answered identity replays only while its dead letter is open"
	if same >= 0 {
		a := &o.attempts[same]
		if !a.answered || a.letter >= 0 && o.letters[a.letter] == "open" {
			return o.again(same, c.Instance, now)
		}
	}
	e := o.open()
	// "abandoned (past due by more than the policy's total limit)"
	gone := e != nil && e.state != "dead" && now.After(e.next.Add(total))
	count, raised := int64(c.Count), int64(-1)
	if c.Count < 0 { // R9
		count = 0
		if e != nil && !gone {
			count = e.retries
		}
	}
	joins := false
	if e != nil && !gone && same < 0 {
		last := &o.attempts[len(o.attempts)-1]
		switch {
		case e.instance == c.Instance: // "raised to it with a warning"
			joins = true
			floor := e.retries
			if last.job == c.Job && last.element == c.Element && last.episodes == len(o.episodes) {
				floor = last.count
			}
			if c.Count < 0 {
				count = floor
			} else if count < floor {
				count, raised = floor, int64(c.Count)
			}
		case e.state != "dead" && count == e.retries: // "joins the episode only at the next count"
			joins = true
		case e.state == "scheduled" && count == last.count && last.next.After(now) && verdict(c) == last.class && // R18
			count < limit && !late(now.Add(last.delay), since(c, now, now)):
			return o.tell("replayed", len(o.attempts)-1, -1)
		}
	}
	return o.decide(c, identity, count, raised, joins, gone, now)
}

// since is the first failure's instant (R23): the submission's where that is earlier than what is known.
func since(c *call, known, now time.Time) time.Time {
	first := now.Truncate(time.Second)
	if known.Before(first) {
		first = known
	}
	if at, err := time.Parse(time.RFC3339, c.Submitted); err == nil && at.Before(first) {
		first = at
	}
	return first
}

// late reports whether a retry may not be made then: "no retry is scheduled beyond" the limit (R20).
func late(next, first time.Time) bool { return next.Truncate(time.Second).Sub(first) > total }

// again is the recorded decision, based anew where its time has passed.
func (o *oracle) again(i int, instance int64, now time.Time) string {
	a := &o.attempts[i]
	if !a.retry || a.next.After(now) {
		return o.tell("replayed", i, -1)
	}
	follows := i == len(o.attempts)-1 && o.open() != nil && o.open().state == "scheduled"
	a.next = now.Truncate(time.Second).Add(a.delay)
	a.answered = false
	switch {
	case late(a.next, a.first):
		o.end(a, follows, instance)
	case follows:
		o.open().next = a.next
	}
	return o.tell("rebased", i, -1)
}

// end gives up a retry that can no longer be made in time.
func (o *oracle) end(a *told, follows bool, instance int64) {
	a.outcome, a.retry, a.next, a.letter = decision.MaxRetriesExceeded, false, time.Time{}, len(o.letters)
	if !follows {
		o.bear("superseded", instance)
		return
	}
	e := o.open()
	if e.letter >= 0 {
		o.settle(e.letter, "superseded")
	}
	o.bear("open", instance)
	e.state, e.retries, e.next, e.letter = "dead", a.count, time.Time{}, a.letter
}

// decide is R1 on a count, and what it leaves behind.
func (o *oracle) decide(c *call, identity string, count, raised int64, joins, gone bool, now time.Time) string {
	a := told{identity: identity, uncounted: fmt.Sprint(c.Job, c.Element, c.Instance, c.Submitted, c.Error), job: c.Job, element: c.Element, count: count, class: verdict(c), letter: -1, first: since(c, now, now)}
	if joins {
		a.first = since(c, o.open().first, now)
	}
	f := decision.Failure{ID: ids[c.ID], Error: c.Error, Match: tiss.Rules.Classify(c.Error, 0), RetryCount: count, HasRetryCount: true}
	d := decision.Decide(&f, tiss, decision.Past{}, now) // for the length of the backoff alone
	switch {
	case count >= limit:
		a.outcome = decision.MaxRetriesExceeded
	case c.Error == "":
		return "rejected"
	case a.class == decision.Permanent:
		a.outcome = decision.PermanentError
	case late(d.NextRetryTime, a.first):
		a.outcome = decision.MaxRetriesExceeded
	default:
		a.outcome, a.retry = decision.Retry, true
		a.delay, a.next = d.Backoff.Delay, d.NextRetryTime
	}
	if a.class == "" {
		a.class = decision.Unknown
	}
	o.reports(c.Instance)
	if !joins {
		if e := o.open(); e != nil {
			state := "superseded"
			if gone {
				state = "abandoned"
			}
			o.close(state, "superseded")
		}
		o.episodes = append(o.episodes, stretch{letter: -1})
	}
	e := &o.episodes[len(o.episodes)-1]
	if e.letter >= 0 && (!a.retry || o.letters[e.letter] == "open") {
		o.settle(e.letter, "superseded")
		e.letter = -1
	}
	e.instance, e.next, e.first = c.Instance, a.next, a.first
	if a.retry {
		e.state, e.retries = "scheduled", count+1
	} else {
		a.letter = o.bear("open", c.Instance)
		e.state, e.retries, e.letter = "dead", count, a.letter
	}
	a.episodes = len(o.episodes)
	o.attempts = append(o.attempts, a)
	return o.tell("fresh", len(o.attempts)-1, raised)
}

// tell in the words of world.tell.
func (o *oracle) tell(how string, i int, raised int64) string {
	a := &o.attempts[i]
	count := a.count
	next := "-"
	if a.retry {
		count++
		next = clock(a.next)
	}
	return fmt.Sprintf("%s %s %s %d next %s attempt %d raised %d", how, a.outcome, a.class, count, next, i+1, raised)
}

func (o *oracle) outcome(c *call, now time.Time) string {
	e := o.open()
	switch {
	case e == nil:
		return "unchanged"
	case c.Success:
		o.reports(c.Instance)
		o.close("recovered", "recovered")
	case e.state == "dead" || e.next.After(now): // "ends it dead unless a retry is pending"
		return "unchanged"
	default:
		o.reports(c.Instance)
		if e.letter >= 0 {
			o.settle(e.letter, "superseded")
		}
		e.state, e.letter, e.next = "dead", o.bear("open", e.instance), time.Time{}
	}
	return "changed"
}

// review is R17's table, on the latest dead letter.
func (o *oracle) review(c *call, now time.Time) string {
	latest := len(o.letters) - 1
	if c.Seen {
		o.seen(c, now)
	}
	switch {
	case c.Fresh && !c.Force, c.Discard && c.Force:
		return "invalid_review"
	case latest < 0:
		return "job_not_found"
	case o.letters[latest] != "open":
		return "invalid_retry_state"
	}
	e := o.open()
	// "retries made": those of the decision that gave up, whatever became of a review since
	count := e.retries
	if c.Discard {
		o.letters[latest] = "discarded"
		e.state, e.letter, e.next = "discarded", -1, time.Time{}
		if o.informs(latest) {
			o.answer(latest, "discard")
		}
		return fmt.Sprint("goes on with ", count)
	}
	switch {
	case !o.waits(latest): // R17: "or no process waits for it"
		return "invalid_retry_state"
	case e.retries >= limit && !c.Force:
		return "max_retries_exceeded"
	case c.Fresh:
		e.state, e.letter = "superseded", -1
		o.episodes = append(o.episodes, stretch{instance: e.instance, first: now, before: count})
	default:
		e.before = count
		e.retries++
	}
	o.letters[latest] = "reprocessing"
	o.answer(latest, "reprocess")
	e = &o.episodes[len(o.episodes)-1]
	e.state, e.letter, e.next = "reprocessing", latest, now.Truncate(time.Second).Add(10*time.Minute)
	return fmt.Sprint("goes on with ", e.retries)
}

// informs reports whether there is a process to be told what was decided; otherwise nobody is.
func (o *oracle) informs(i int) bool {
	if o.waits(i) {
		return true
	}
	o.told[i].delivery = "nobody"
	return false
}

// seen is the review job of the latest dead letter: its key is stored; where that is open no more, it is told why.
func (o *oracle) seen(c *call, _ time.Time) string {
	i := len(o.letters) - 1
	if i < 0 {
		return "job_not_found"
	}
	o.told[i].job = c.Job
	if o.letters[i] == "open" {
		o.told[i].delivery = ""
	} else if !slices.ContainsFunc(o.answers, func(a notice) bool { return a.letter == i }) {
		o.answer(i, o.verdictOf(i))
	}
	return o.letters[i]
}

// delivered is the first answer on its way: the engine took it, or knows no such job.
func (o *oracle) delivered(c *call, _ time.Time) string {
	if len(o.answers) == 0 {
		return "nothing to deliver"
	}
	a := o.answers[0]
	o.answers = o.answers[1:]
	p, before := &o.told[a.letter], o.told[a.letter].delivery
	if c.Success {
		p.delivery = "taken"
	}
	switch {
	case p.job != a.job: // "the other job waits still"
		o.answer(a.letter, o.verdictOf(a.letter))
	case c.Success, before == "taken":
	default:
		p.delivery = "nobody"
		if e := o.open(); e != nil && e.state == "reprocessing" && e.letter == a.letter {
			o.letters[a.letter] = "open"
			e.state, e.retries, e.next = "dead", e.before, time.Time{}
		}
	}
	return a.decision + " to " + fmt.Sprint(a.job)
}

// states of all episodes and dead letters, in the words of world.states.
func (o *oracle) states() string {
	text := ""
	for _, e := range o.episodes {
		text += fmt.Sprintf("%s of %d at %d since %s next %s; ", e.state, e.instance, e.retries, clock(e.first), clock(e.next))
	}
	var letters []string
	for i, state := range o.letters {
		letters = append(letters, strings.TrimRight(state+" "+o.told[i].delivery, " "))
	}
	return text + fmt.Sprint(letters)
}
