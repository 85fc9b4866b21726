package main

import (
	"slices"
	"sort"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
)

// How long the portal takes to answer, and how long a submission without an answer takes to fail.
const (
	answerTime = time.Second
	timeout    = 30 * time.Second
)

// epoch is the start of every trace.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// event is something that happens at an instant of the virtual time.
type event struct {
	at   time.Duration
	play func(at time.Duration)
}

// progress is how far a claim has come.
type progress struct {
	retries      int64
	firstFailure time.Time
	kind         destination.Kind
	sent         time.Duration
	error        string // the answer to the submission under way
}

// player plays one service.
type player struct {
	*options
	service  string
	portal   portal
	claims   []claim
	progress []progress
	next     int     // index of the claim that arrives next
	queue    []event // by time
	gate     *destination.Gate
	woken    time.Duration
	drains   *drains
	tally    *tally
}

func play(outages []outage, claims []claim, o *options, gated bool, t *tally) {
	p := &player{options: o, service: outages[0].service, claims: claims,
		portal: portal{outages: outages, capacity: o.capacity}, progress: make([]progress, len(claims)),
		tally: t, drains: newDrains(outages, claims, o.capacity)}
	if gated {
		settings := o.destination(p.service)
		settings.Pace.Most, settings.Pace.Limited = float64(o.capacity), true
		settings.Pace.Start = min(settings.Pace.Start, settings.Pace.Most)
		p.gate = &destination.Gate{Name: p.service, Settings: settings, State: destination.New(epoch)}
		p.woken = -1
	}
	for p.next < len(claims) || len(p.queue) > 0 {
		p.one()
	}
	p.drains.close(t)
}

// one plays the next event.
func (p *player) one() {
	if p.next < len(p.claims) && (len(p.queue) == 0 || p.claims[p.next].arrived <= p.queue[0].at) {
		p.next++
		p.arrive(p.next-1, p.claims[p.next-1].arrived)
		return
	}
	e := p.queue[0]
	p.queue = p.queue[1:]
	e.play(e.at)
}

func (p *player) at(at time.Duration, play func(at time.Duration)) {
	after := sort.Search(len(p.queue), func(i int) bool { return p.queue[i].at > at })
	p.queue = slices.Insert(p.queue, after, event{at, play})
}

// claimOf returns what the gate calls a claim, which is not 0, by its index. indexOf returns the index.
func claimOf(index int) int64 { return int64(index) + 1 }

func indexOf(claim int64) int { return int(claim) - 1 }

// arrive takes a claim to the gate, or to the portal if there is no gate, before each submission.
func (p *player) arrive(claim int, at time.Duration) {
	if p.gate == nil {
		p.submit(claim, at)
		return
	}
	c, now := &p.progress[claim], epoch.Add(at)
	if c.firstFailure.IsZero() {
		c.firstFailure = now // the total limit counts from the first hold of a claim that never failed (R27)
	}
	p.gate.Hold(destination.Held{Claim: claimOf(claim), Since: now,
		RetriesLeft: p.policy.MaxRetries - c.retries,
		Limit:       p.policy.TimeLimit(p.service, c.firstFailure)})
	p.open(at)
}

// open submits what the gate lets through.
func (p *player) open(at time.Duration) {
	released, givenUp, probe := p.gate.Due(epoch.Add(at))
	for _, r := range released {
		claim := indexOf(r.Claim)
		p.progress[claim].kind = r.Kind
		p.submit(claim, at)
	}
	for _, h := range givenUp {
		p.giveUp(indexOf(h.Claim), at)
	}
	if probe {
		p.tell(destination.Probed{OK: p.portal.downUntil(at) == 0}, at)
	}
	p.sleep(at)
}

func (p *player) tell(e destination.Event, at time.Duration) { p.gate.Apply(e, epoch.Add(at)) }

// sleep schedules the gate's next wake-up, unless the gate is empty and nothing happens in the next hour.
func (p *player) sleep(now time.Duration) {
	next := p.gate.Next(epoch.Add(now))
	idle := p.gate.Queue.Len() == 0 && len(p.queue) == 0 &&
		(p.next == len(p.claims) || p.claims[p.next].arrived > now+after)
	if next.IsZero() || idle {
		return
	}
	if at := max(now, next.Sub(epoch)); p.woken < 0 || at < p.woken {
		p.woken = at
		p.at(at, p.wake)
	}
}

// wake opens the gate, unless an earlier wake-up has replaced this one.
func (p *player) wake(at time.Duration) {
	if at == p.woken {
		p.woken = -1
		p.open(at)
	}
}

func (p *player) submit(claim int, at time.Duration) {
	c := &p.progress[claim]
	var takes time.Duration
	c.error, takes = p.portal.submit(at)
	c.sent = at
	p.drains.sent(at)
	p.tally.submit(&p.claims[claim], c.error != "")
	p.at(at+takes, func(at time.Duration) { p.answer(claim, at) })
}

func (p *player) answer(claim int, at time.Duration) {
	c := &p.progress[claim]
	if c.error == "" {
		p.recover(claim, at)
		if p.gate != nil && c.kind.Wanted() {
			p.tell(destination.Outcome{Tells: destination.TellsAnswered, Claim: claimOf(claim), Sent: epoch.Add(c.sent)}, at)
		}
	} else {
		p.fail(claim, at)
	}
	if p.gate != nil {
		p.open(at)
	}
}

// fail has the policy decide, and tells the gate.
func (p *player) fail(claim int, at time.Duration) {
	c, now := &p.progress[claim], epoch.Add(at)
	match := p.policy.Rules.Classify(c.error, 0)
	f := decision.Failure{ID: p.claims[claim].id, Error: c.error, RetryCount: c.retries, HasRetryCount: true,
		Destination: p.service, Match: match}
	d := decision.Decide(&f, p.policy, decision.Past{FirstFailure: c.firstFailure, Retries: c.retries, Remembers: true},
		now)
	c.firstFailure, c.retries = d.FirstFailure, d.RetryCount
	if d.ShouldRetry() {
		p.at(max(at, d.NextRetryTime.Sub(epoch)), func(at time.Duration) { p.arrive(claim, at) })
	} else {
		p.giveUp(claim, at)
	}
	if p.gate != nil {
		if tells := destination.TellsOf(&match, 0); tells != "" {
			p.tell(destination.Outcome{Tells: tells, Claim: claimOf(claim), Sent: epoch.Add(c.sent)}, at)
		}
	}
}

func (p *player) recover(claim int, at time.Duration) {
	p.drains.done(claim, at)
	p.tally.recover(&p.claims[claim], p.portal.outages, at)
}

func (p *player) giveUp(claim int, at time.Duration) {
	p.drains.done(claim, at)
	p.tally.giveUp(&p.claims[claim])
}

// portal is the system that claims are sent to.
type portal struct {
	outages  []outage
	capacity int
	taken    []time.Duration // submissions of the last minute
}

// downUntil returns when the outage at an instant ends; 0 if the portal is up.
func (p *portal) downUntil(at time.Duration) time.Duration {
	i := sort.Search(len(p.outages), func(i int) bool { return at < p.outages[i].end })
	if i == len(p.outages) || at < p.outages[i].start {
		return 0
	}
	return p.outages[i].end
}

// submit returns the error of a submission, empty for success, and how long the answer takes.
func (p *portal) submit(at time.Duration) (failure string, takes time.Duration) {
	if p.downUntil(at) > 0 {
		return "TIMEOUT", timeout
	}
	for len(p.taken) > 0 && p.taken[0] <= at-time.Minute {
		p.taken = p.taken[1:]
	}
	if len(p.taken) >= p.capacity {
		return "RATE_LIMIT", answerTime
	}
	p.taken = append(p.taken, at)
	return "", answerTime
}
