package bulk

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"retry-worker/e2e/harness"
)

const (
	// claims die of one credential; others of something else.
	claims = 400
	others = 5
	// pace of the run, a minute.
	pace = 60
	// paused and away are how long people hold the run up, and the engine is down, by the worker's clock.
	paused = time.Minute
	away   = time.Minute // beside what a broker's start takes
)

// Four hundred claims die of one credential. They are one cause, one plan and one run at sixty a minute, which is paused,
// killed, goes on by another catalogue, and is left alone by its engine; each ends as recovered or dead again, once. One mail told the team, not four hundred.
func (s *site) playCredential() {
	begun := time.Now()
	s.submit(patient, 1, others)
	s.submit(credential, 1, claims)
	s.begin() // when all of them have failed already: they die at once
	ana, bruno := s.desk("ana"), s.desk("bruno")
	cause := s.awaitCause(claims)
	s.expectOneMail()
	s.must(s.worker.Stop(s.t.Context(), enough))
	s.hurry()
	s.begin()
	c := command{Action: "retry", Filter: filter{Fingerprint: cause.Fingerprint}, When: "now", PerMinute: pace, Reason: "senha da operadora corrigida"}
	p := s.expectPlan(ana.plan(c))
	s.mayNotStart("vera", c, p)

	s.portal.correct(credential)
	r := ana.start(c, p)
	ana.awaitRun(r.ID, "a minute's worth of decisions", func(r *run) bool { return r.decided() >= pace })
	from, until := s.pauses(bruno, r.ID)

	ana.awaitRun(r.ID, "more decisions after the pause", func(r *run) bool { return r.decided() >= 2*pace })
	dead := ana.run(r.ID).decided()
	s.worker.Kill()
	killed := s.clock.Now()
	s.begin()
	s.changeCatalogue()
	ana.awaitRun(r.ID, "decisions after the kill", func(r *run) bool { return r.decided() >= max(dead, 2*pace)+pace })

	s.leaves(ana, r.ID)
	r = ana.awaitRun(r.ID, "the end of the run", func(r *run) bool { return r.State == "done" })
	want := map[string]int{"recovered": claims - claims/stubborn, "dead_again": claims / stubborn}
	r = ana.awaitRun(r.ID, "what became of all", func(r *run) bool { return r.has(want) })
	if r.Total != claims || r.By != "ana" || r.EndedAt == nil {
		s.t.Errorf("the run has ended as %+v", r)
	}
	items := ana.items(r.ID)
	fastest := s.expectPace(items, from, until)
	s.expectOutcomes(items)
	l := s.expectDecidedOnce(r.ID, "ana", items, "start by ana", "pause by bruno", "resume by bruno", "finish")
	s.expectPage(ana, &r)
	s.expectEngine()
	mails := s.expectMails()
	done(s.t, "400 claims of one credential", "one cause, %d recovered, %d dead again; at most %d in a minute; paused, killed at %d (on again %.0f s later by its clock), another catalogue, engine away; %s; %s; %.0f s",
		r.Counts["recovered"], r.Counts["dead_again"], fastest, dead, s.firstAfter(items, killed).Sub(killed).Seconds(), mails, l.String(), time.Since(begun).Seconds())
}

// awaitCause waits until n claims of the credential are dead letters on which somebody can decide, and returns their cause.
func (s *site) awaitCause(n int) group {
	s.t.Helper()
	var all []group
	eventually(s.t, func() string { return fmt.Sprintf("%d dead letters of one cause; there are %+v", n, all) }, func() bool {
		all = s.desk("vera").groups()
		return len(all) == 2 && all[0].Count == n
	})
	g := all[0]
	if g.Reason != "INVALID_CREDENTIALS" || g.MatchedRule != "tiss-fault-login" || g.Sample.Reason != g.Reason || g.Policy != "tiss-submission" || !slices.Equal(g.Teams, []string{"ti"}) || g.FirstSeen.After(g.LastSeen) ||
		!strings.HasPrefix(g.Sample.Subject.ID, "CLM-"+credential+"-") || g.Sample.Fingerprint != g.Fingerprint {
		s.t.Errorf("the cause is %+v", g)
	}
	s.history.Await(s.t, "every process to wait for people", func() bool {
		return s.history.waiting()[1] == n+others
	})
	c := command{Action: "retry", Filter: filter{Fingerprint: g.Fingerprint}}
	eventually(s.t, func() string { return "the worker to know that every process waits" }, func() bool { return s.desk("vera").plan(c).Ready == n })
	return g
}

// expectPlan holds what the plan says before anything happens.
func (s *site) expectPlan(p plan) plan {
	s.t.Helper()
	if p.Total != claims || p.Ready != claims || len(p.Refused) > 0 || p.Token == "" || len(p.Causes) != 1 || p.Causes[0].Count != claims {
		s.t.Errorf("the plan is %+v", p)
	}
	if len(p.Tallies) != 1 || p.Tallies[0].Team != "ti" || p.Tallies[0].Count != claims {
		s.t.Errorf("the plan's tallies are %+v", p.Tallies)
	}
	if p.Seconds < claims-pace || p.Seconds > claims+pace {
		s.t.Errorf("the plan says %d s for %d at %d a minute", p.Seconds, claims, pace)
	}
	return p
}

// mayNotStart holds that who may only look can start nothing.
func (s *site) mayNotStart(name string, c command, p plan) {
	s.t.Helper()
	c.Token = p.Token
	s.desk(name).refuses("/bulk-runs", c, http.StatusForbidden, "forbidden_role")
}

// pauses the run for a while, in which nothing is decided, and returns from when to when.
func (s *site) pauses(d desk, id string) (from, until time.Time) {
	s.t.Helper()
	r := d.step(id, "pause")
	from = s.clock.Now()
	if r.State != "paused" || r.ChangedBy != d.name {
		s.t.Errorf("paused, the run is %+v", r)
	}
	s.clock.Rest(s.t.Context(), paused)
	if after := d.run(id); after.State != "paused" || after.decided() > r.decided()+1 { // one was on its way
		s.t.Errorf("paused at %d decisions, the run has %d and is %s", r.decided(), after.decided(), after.State)
	}
	until = s.clock.Now()
	if r = d.step(id, "resume"); r.State != "running" {
		s.t.Errorf("resumed, the run is %+v", r)
	}
	return from, until
}

// leaves the run without its engine, until it has said so and nothing was decided for a while.
func (s *site) leaves(d desk, id string) {
	s.t.Helper()
	s.broker.Kill()
	held := d.awaitRun(id, "the run to hold because its engine is down", func(r *run) bool { return r.Hold == "engine_down" })
	if held.State != "running" || held.HeldAt == nil {
		s.t.Errorf("without its engine the run is %+v", held)
	}
	s.clock.Rest(s.t.Context(), away)
	if after := d.run(id); after.decided() > held.decided()+1 || after.Hold != "engine_down" {
		s.t.Errorf("held at %d decisions, the run has %d and holds because of %q", held.decided(), after.decided(), after.Hold)
	}
	s.must(s.broker.Restart(s.t.Context()))
	d.awaitRun(id, "the run to go on by itself", func(r *run) bool { return r.Hold == "" && r.decided() > held.decided()+1 })
}

// changeCatalogue in the midst of runs: the version is another, the decisions go on.
func (s *site) changeCatalogue() {
	s.t.Helper()
	harness.Replace(s.t, s.path("policies.yaml"), strings.Replace(s.policies(), "totalLimit: 48h", "totalLimit: 47h", 1))
	s.worker.Log.AwaitEvent(s.t, "catalogue_changed")
}

// instants at which the items were decided, in order.
func instants(items []item) []time.Time {
	var all []time.Time
	for _, i := range items {
		if i.DecidedAt != nil {
			all = append(all, *i.DecidedAt)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// firstAfter is when the first was decided after an instant.
func (s *site) firstAfter(items []item, instant time.Time) time.Time {
	s.t.Helper()
	all := instants(items)
	n := slices.IndexFunc(all, instant.Before)
	if n < 0 {
		s.t.Fatal("nothing was decided after it")
	}
	return all[n]
}

// expectPace holds that no minute had more decisions than the pace, with a second's worth for the last that was late, and
// that none fell into the pause. It returns the most of a minute.
func (s *site) expectPace(items []item, from, until time.Time) (most int) {
	s.t.Helper()
	all := instants(items)
	if len(all) != claims {
		s.t.Errorf("%d items were decided, expected %d", len(all), claims)
	}
	first := 0
	for n, at := range all {
		for at.Sub(all[first]) >= time.Minute {
			first++
		}
		most = max(most, n-first+1)
		const onItsWay = 5 * time.Second // a sixth of a second of the machine's
		if at.After(from.Add(onItsWay)) && at.Before(until) {
			s.t.Errorf("one was decided at %s, in the pause from %s to %s", at, from, until)
		}
	}
	if most > pace+2 {
		s.t.Errorf("%d were decided in one minute, expected at most %d", most, pace)
	}
	return most
}

// expectOutcomes holds what became of each item against what the portals said.
func (s *site) expectOutcomes(items []item) {
	s.t.Helper()
	want := make(map[string]string)
	for n := 1; n <= claims; n++ {
		want[claimID(credential, n)] = "recovered"
		if n%stubborn == 0 {
			want[claimID(credential, n)] = "dead_again"
		}
	}
	for _, i := range items {
		if want[i.Subject.ID] != i.Outcome {
			s.t.Errorf("%s is %s, expected %q", i.Subject.ID, i.Outcome, want[i.Subject.ID])
		}
		delete(want, i.Subject.ID)
	}
	if len(want) > 0 {
		s.t.Errorf("%d claims are not among the items", len(want))
	}
}

// expectEngine holds what the engine saw: each review answered once, and each process where it should be.
func (s *site) expectEngine() {
	s.t.Helper()
	again := claims / stubborn
	s.history.Await(s.t, "the engine to have done all", func() bool {
		return s.history.ends()["resubmission_recorded"] == claims-again && s.history.waiting()[2] == again
	})
	s.history.Look(func() {
		for key, times := range s.history.completed["retry-review"] {
			if times != 1 {
				s.t.Errorf("the review %d was answered %d times", key, times)
			}
		}
		if n := len(s.history.completed["retry-review"]); n != claims {
			s.t.Errorf("%d reviews were answered, expected %d", n, claims)
		}
		if ends, waiting := s.history.ends(), s.history.waiting(); len(ends) != 1 || len(waiting) != 2 || waiting[1] != others {
			s.t.Errorf("the processes ended at %v, or wait for their nth review: %v", ends, waiting)
		}
	})
}

// expectPage holds that the run's own page says what became of its items.
func (s *site) expectPage(d desk, r *run) {
	s.t.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://"+s.worker.API+"/bulk-runs/"+r.ID, nil)
	s.must(err)
	request.Header.Set("Authorization", "Bearer "+s.secrets[d.name])
	response, err := client.Do(request)
	s.must(err)
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	s.must(err)
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("the run's page: %s", response.Status)
	}
	for outcome, n := range r.Counts {
		row := regexp.MustCompile(fmt.Sprintf(`class="o-%s".*<td class="num"><strong>%d</strong>`, outcome, n))
		if n > 0 && !row.Match(page) {
			s.t.Errorf("the run's page does not say that %d are %s", n, outcome)
		}
	}
	if !strings.Contains(string(page), "ana") || !strings.Contains(string(page), r.Reason) {
		s.t.Error("the run's page does not say who started it, and why")
	}
}

// expectOneMail holds that the team was told of all of them in one mail, and the team of the others of those.
func (s *site) expectOneMail() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), enough)
	defer cancel()
	all, err := s.mail.Await(ctx, 2)
	s.must(err)
	for _, m := range all {
		want := map[string]string{"ti@hospital.example": fmt.Sprint(claims), "cadastro@hospital.example": fmt.Sprint(others)}[m.To[0]]
		if want == "" || !strings.Contains(m.Subject+"\n"+m.Text, want) || !strings.Contains(m.Text, "https://retry.hospital.example/dead-letters") {
			s.t.Errorf("the mail to %v does not say %q, or has no link:\n%s\n%s", m.To, want, m.Subject, m.Text)
		}
		if strings.Contains(string(m.Raw)+m.Text, "CLM-") {
			s.t.Errorf("the mail to %v has a claim's id in it:\n%s", m.To, m.Text)
		}
	}
}

// expectMails holds that nobody was told anything else: the next would come after the interval.
func (s *site) expectMails() string {
	s.t.Helper()
	all, err := s.mail.Messages()
	s.must(err)
	to := make(map[string]int)
	for _, m := range all {
		to[m.To[0]]++
	}
	if len(to) != 2 || to["ti@hospital.example"] != 1 || to["cadastro@hospital.example"] != 1 {
		s.t.Errorf("mails came to %v, expected one to ti and one to cadastro", to)
	}
	return fmt.Sprintf("%d mail told ti", to["ti@hospital.example"])
}
