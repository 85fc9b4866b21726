package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/events"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

// disturb kills replicas, moves their clocks, takes the right to write from them, fills the disk, has the engine lose a
// process, and changes the policies.
func (s *sim) disturb() {
	s.every("kill", 40*time.Minute, func(r *replica) {
		if s.draw("asked to end").IntN(2) == 0 {
			r.leave()
		} else {
			r.die()
		}
	})
	s.every("clock", 50*time.Minute, func(r *replica) {
		skew, drift := s.draw("skew").IntN(80_000)-40_000, s.draw("drift").IntN(400)-200
		r.mu.Lock()
		r.skew, r.drift, r.drifts = time.Duration(skew)*time.Millisecond, time.Duration(drift)*time.Millisecond, time.Now()
		r.mu.Unlock()
		s.jumped = time.Now()
		s.say("the clock of %s is off by %s, and by %s more each minute", r.name, r.skew, r.drift)
	})
	s.every("purge", time.Hour, func(r *replica) {
		waits := func(p *process) bool { // people, and engines, are slower here than in the years that records are kept
			from := s.left[p.latest()].at
			if p.phase == worker.RetryReview {
				from = s.letter(fmt.Sprint(p.vars["deadLetterId"])).CreatedAt
			}
			return p.ended == "" && !from.IsZero() && time.Since(from) > retention-2*clocksApart
		}
		if slices.ContainsFunc(s.processes, waits) {
			return
		}
		s.running.Go(func() {
			from := r.Now().Add(-retention)
			n, err := r.journal.Purge(r.life, r.store, retention, false)
			s.say("%s purges %d records: %v", r.name, n, err)
			kept, _ := s.memory.Records(context.Background(), journal.RecordFilter{Until: from}, 0, 1<<30)
			for _, k := range kept { // what goes on may be older
				if err == nil && k.Kind == journal.RejectionEntry && k.Subject == (journal.Subject{}) {
					s.fail("%s purges what is older than %s, and record %d of %s is kept", r.name, from, k.Record, k.At)
				}
			}
		})
	})
	s.every("erasure", 20*time.Minute, func(r *replica) {
		p := s.anyOf("erased")
		unseen := func(q *process) bool { // its dead letter may be decided on, and it not be known to wait
			return q.claim == p.claim && q.phase == worker.RetryReview && s.letter(fmt.Sprint(q.vars["deadLetterId"])).ReviewJobKey != q.latest()
		}
		if p != nil && !slices.ContainsFunc(s.processes, unseen) {
			s.running.Go(func() { r.erase(p.claim) })
		}
	})
	s.every("told late", 20*time.Minute, func(r *replica) { // that an earlier try went well after all
		if p := s.anyOf("late word"); p != nil && s.last[p.claim] != nil {
			at := s.last[p.claim].AnalysedAt.Add(-time.Duration(s.draw("how late").IntN(600)) * time.Second)
			who := "late " + p.claim + s.another()
			s.running.Go(func() {
				_, err := r.journal.Conclude(r.life, &journal.Outcome{Subject: subjectOf(p.claim), Success: true, At: at.Add(-time.Second)})
				r.say("somebody tells that %s went well at %s: %v", p.claim, at.Sub(s.began), r.told(who, err))
			})
		}
	})
	s.every("teaching", time.Duration(30+90*s.draw("seldom taught").IntN(2))*time.Minute, func(r *replica) {
		if s.unknown != "" {
			s.running.Go(r.teach)
		}
	})
	s.every("failure told", 20*time.Minute, func(r *replica) { // of a claim that waits for its retry
		if p := s.anyOf("told to fail"); p != nil && s.begun(p.claim) == 1 && p.waitsFor(2*clocksApart) {
			who := "failure of " + p.claim + s.another()
			s.running.Go(func() {
				_, err := r.journal.Conclude(r.life, &journal.Outcome{Subject: subjectOf(p.claim), ProcessInstanceKey: p.key})
				r.say("somebody tells that %s failed: %v", p.claim, r.told(who, err))
			})
		}
	})
	s.every("store", 30*time.Minute, func(r *replica) {
		dice := s.draw("writable")
		until := time.Now().Add(time.Duration(dice.IntN(180)) * time.Second)
		how := dice.IntN(4)
		for _, one := range s.replicas {
			switch {
			case how == 0 && one == r, how == 1: // it is read-only, or its disk full
				one.readOnly = until
			case how == 2 && one == r, how == 3: // it is away
				one.cut = until
			}
		}
		s.noStore(until)
		s.say("the store cannot be %s until %s", map[bool]string{true: "written", false: "reached"}[how < 2], until.Sub(s.began).Truncate(time.Second))
	})
	s.every("engine", 90*time.Minute, func(*replica) {
		dice := s.draw("away")
		s.goAway(time.Duration(dice.IntN([]int{120, 480, 7200}[dice.IntN(3)])) * time.Second)
		s.mute = dice.IntN(3) == 0
		s.say("the engine is away until %s, and does not say so: %t", s.away.Sub(s.began).Truncate(time.Second), s.mute)
	})
	s.every("refused", 3*time.Hour, func(*replica) {
		if p := s.anyOf("refused"); p != nil && time.Since(s.refusedUntil) > longLateness {
			of := subjectOf(p.claim)
			s.refused, s.refusedUntil = of.OutboxKey(), time.Now().Add(time.Duration(s.draw("refused").IntN(150))*time.Minute)
			s.say("nobody takes the events of %s until %s", p.claim, s.refusedUntil.Sub(s.began).Truncate(time.Second))
		}
	})
	s.every("listener", 2*time.Hour, func(*replica) {
		s.deaf = time.Now().Add(time.Duration(s.draw("deaf").IntN(20)) * time.Minute)
		s.say("nobody takes events until %s", s.deaf.Sub(s.began).Truncate(time.Second))
	})
	s.every("cancelled", time.Hour, func(*replica) {
		if waiting := slices.DeleteFunc(slices.Clone(s.processes), func(p *process) bool { return !s.isWaiting(p) }); len(waiting) > 0 {
			s.cancel(pick(&s.scheduler, "cancelled at its gate", waiting, func(p *process) string { return p.claim }).claim, worker.SubmissionGate)
		}
	})
	s.every("rush", 20*time.Minute, func(*replica) {
		name, label := s.portalNames()[s.draw("rush").IntN(len(s.portalNames()))], "rush"+s.another()
		s.say("claims rush to %s", name)
		for _, r := range s.up() {
			s.running.Go(func() { r.rush(name, label) })
		}
	})
	s.every("wipe", 30*time.Minute, func(*replica) {
		if p := s.anyOf("wiped"); p != nil {
			s.wipe(p)
		}
	})
	s.every("destinations", 2*time.Hour, func(*replica) { s.configure() })
	s.every("policies", 2*time.Hour, func(*replica) {
		n := int64(2 + s.draw("max retries").IntN(5))
		s.reload(func(p *decision.Policy) { p.MaxRetries = n })
		s.say("at most %d retries from now on", n)
	})
	s.every("catalogue", 5*time.Minute, func(*replica) { s.reload(func(*decision.Policy) {}) })
}

// rush has claims ask a replica again and again whether they may go to a portal at once, for as long as paces are counted.
// Who may not is withdrawn, so that nobody waits.
func (r *replica) rush(name, label string) {
	for began := time.Now(); time.Since(began) < paceTime && r.life.Err() == nil; r.Rest(r.life, 300*time.Millisecond) {
		r.port(label + " asks " + r.name)
		r.admit(name, -time.Now().UnixNano(), time.Time{})
	}
}

// noStore notes that somebody cannot write until then.
func (s *sim) noStore(until time.Time) {
	s.storeAway = slices.MaxFunc([]time.Time{s.storeAway, until}, time.Time.Compare)
}

// reload has another catalogue be in force.
func (s *sim) reload(change func(*decision.Policy)) {
	p := *s.policies[decision.DefaultPolicy]
	change(&p)
	p.Catalogue += "'"
	set(&s.mu, &s.policies, decision.Policies{decision.DefaultPolicy: &p})
}

// configure draws the pace of all portals.
func (s *sim) configure() {
	now := destination.Defaults()
	now.Pace.Most, now.Pace.Limited = float64(20+20*s.draw("pace").IntN(3)), s.draw("limited").IntN(2) == 0
	s.paceBefore = s.settings.Destinations.Named["portal-0"].Pace.Most
	settings := gate.Settings{Version: s.settings.Version + "1", Destinations: destination.Configured{Named: map[string]destination.Settings{}}}
	for name, w := range s.portals {
		with := now
		with.Calendar = w.calendar
		if w.probed {
			with.Probe.URL = probeURL + name
		}
		settings.Destinations.Named[name] = with
	}
	set(&s.mu, &s.settings, settings)
	s.configured = time.Now()
	s.say("at most %.0f claims a minute from now on; while a portal is up, too: %t", now.Pace.Most, now.Pace.Limited)
}

// anyOf draws a process of those that were drawn; nil where that one was taken away, or has not begun.
func (s *sim) anyOf(label string) *process {
	claim := nameOf(1 + s.draw(label).IntN(s.drawn))
	i := slices.IndexFunc(s.processes, func(p *process) bool { return p.claim == claim && p.ended != "wiped" })
	if i < 0 {
		return nil
	}
	return s.processes[i]
}

// rough is what does not happen in a steady world.
var rough = []string{"clock", "store", "engine", "refused", "listener", "wipe"}

// every has something happen to a replica again and again, apart on average, while there is weather.
func (s *sim) every(label string, apart time.Duration, do func(r *replica)) {
	if s.draw("any "+label).IntN(3) == 0 || s.steady && slices.Contains(rough, label) {
		return
	}
	var next func()
	next = func() {
		dice := s.draw(label)
		s.in(time.Duration(dice.Int64N(int64(2*apart))), func() {
			name := label + s.another()
			if r := s.replicas[dice.IntN(12)%len(s.replicas)]; !s.calm && r.life.Err() == nil && s.may(name) {
				do(r)
			}
			next()
		})
	}
	next()
}

// waitsFor reports whether the process waits for its retry for so long.
func (p *process) waitsFor(long time.Duration) bool {
	return p.phase == atTimer && p.ended == "" && time.Until(p.until) > long
}

// retention is how long records are kept: not as long as claims are retried.
const retention = 90 * time.Minute

// erase erases a claim, about which nothing is to be done any more: its name stands nowhere then.
func (r *replica) erase(claim string) {
	done, err := r.journal.Erase(r.life, r.store, journal.Erasure{Subject: subjectOf(claim), Reason: "simulated", By: "ana"})
	if err == nil {
		r.erased(claim)
	}
	why, _, _ := strings.Cut(fmt.Sprint(err), ":") // the rest may name a bulk run, whose id is drawn
	r.say("somebody erases %s: %d records, %s", claim, done.Records, why)
}

func subjectOf(claim string) journal.Subject {
	return journal.Subject{Tenant: journal.DefaultTenant, Policy: decision.DefaultPolicy, ID: claim}
}

// calmDown ends the weather.
func (s *sim) calmDown() {
	if s.failed != "" {
		return
	}
	s.say("all is calm from now on")
	s.mu.Lock()
	s.calm, s.calmSince, s.away, s.deaf = true, time.Now(), time.Now(), time.Now()
	s.refusedUntil = time.Now()
	for _, r := range s.replicas {
		r.skew, r.drift, r.readOnly, r.cut = 0, 0, time.Time{}, time.Time{}
	}
	s.mu.Unlock()
}

// leave has the engine be away for a while, at one in so many of the steps that it would disturb.
func (s *sim) leave(during string, oneIn int) {
	if during = "engine away in a " + during; s.sometimes(during, 1, oneIn) {
		s.goAway(time.Duration(s.draw("long "+during).IntN(120)) * time.Second)
	}
}

// goAway has the engine be away for that long.
func (s *sim) goAway(long time.Duration) {
	if s.steady {
		return
	}
	if time.Since(s.away) > 0 {
		s.gone = time.Now()
	}
	set(&s.mu, &s.away, time.Now().Add(long))
}

// wipe has the engine lose a process that no job of waits for an answer. It begins anew with the keys that it had.
func (s *sim) wipe(p *process) {
	if p.phase != atTimer && p.phase != hasEnded || p.ended == "wiped" || p.ended == "cancelled" || time.Since(p.since) < 2*time.Minute {
		return
	}
	of := subjectOf(p.claim)
	if slices.ContainsFunc(s.memory.Outbox(), func(m journal.Message) bool { return m.Queue != events.Queue && m.Key == of.OutboxKey() }) {
		return // it would be sent to another's job
	}
	twin := func(q *process) bool { return q != p && q.claim == p.claim && q.ended == "" } // is told what p was (R18)
	if slices.ContainsFunc(s.processes, twin) {
		return
	}
	for _, key := range p.keys() { // what may not have been answered is answered again
		for _, a := range s.attempts[key] {
			if !s.memory.Answered(a.Record) {
				return
			}
		}
	}
	if s.stop(p, "wiped"); p.phase == hasEnded {
		s.end(p)
	}
	delete(s.last, p.claim)
	for _, key := range p.keys() {
		s.forget(key)
	}
	s.send(p.claim, p.portal, p.key, time.Duration(s.draw("anew").IntN(300))*time.Second, time.Time{})
}
