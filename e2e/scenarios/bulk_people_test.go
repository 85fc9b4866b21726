package scenarios

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"retry-worker/internal/testkit/wait"
)

// denied is how many claims die for want of an authorization.
const denied = 60

// playPeople has two people decide on the same dead letters: with plans that no longer match, runs that overlap, and single
// decisions in the midst of them. None is decided on twice, and every sum is right.
func (s *bulkRuns) playPeople() {
	ana := s.by("ana")
	before := len(ana.letters("open"))
	s.dying(authorization, 1, denied)
	c := command{Action: "retry", Filter: filter{Reason: "AUTHORIZATION_DENIED"}, When: "now", PerMinute: pace, Reason: "autorizações obtidas"}
	var p plan
	wait.Until(s.t, "the claims to be ready", func() bool {
		p = ana.plan(c)
		return p.Ready == denied
	}, func() string { return fmt.Sprintf("%+v", p) })
	s.expectExtremes(c, before+denied)
	p = s.outdates(c, p)
	first, second := s.overlap(c, p)
	alone := s.interferes(first, second)
	s.expectShared(first.ID, second.ID, alone)
	l := s.ledger("")
	s.done("two people, overlapping bulk runs", "%d claims, %s", denied, l.String())
}

// expectExtremes holds what plans of nothing and of everything say.
func (s *bulkRuns) expectExtremes(c command, open int) {
	s.t.Helper()
	ana := s.by("ana")
	c.Filter = filter{Query: "nada disso existe"}
	p := ana.plan(c)
	if p.Total != 0 || p.Ready != 0 || p.Oldest != nil {
		s.t.Errorf("the plan of a filter that matches nothing is %+v", p)
	}
	c.Token = p.Token
	ana.refuses("/bulk-runs", c, http.StatusUnprocessableEntity, "nothing_to_do")
	c.Filter = filter{}
	if p = ana.plan(c); p.Total != open || len(p.Causes) < 3 {
		s.t.Errorf("the plan of everything has %d in %d causes, expected %d in 3 or more", p.Total, len(p.Causes), open)
	}
}

// outdates a plan by a decision on one of its dead letters, which the start is told; what dies later than a plan is made is no
// reason to refuse. It returns a plan that holds.
func (s *bulkRuns) outdates(c command, p plan) plan {
	s.t.Helper()
	ana, bruno := s.by("ana"), s.by("bruno")
	var letters struct{ Items []deadLetter }
	ana.get("/dead-letters?limit=1&reason=AUTHORIZATION_DENIED", &letters)
	var discarded deadLetter
	if _, err := bruno.ask("/dead-letters/"+letters.Items[0].ID+"/discard", map[string]string{"reason": "paciente desistiu"}, http.StatusOK, &discarded); err != nil {
		s.t.Fatal(err)
	}
	c.Token = p.Token
	said := ana.refuses("/bulk-runs", c, http.StatusConflict, "plan_outdated")
	if !strings.Contains(said, fmt.Sprint(denied)) || !strings.Contains(said, fmt.Sprint(denied-1)) {
		s.t.Errorf("of a plan of %d that is one of %d now, this is said: %s", denied, denied-1, said)
	}
	p = ana.plan(c)
	s.dying(authorization, denied+1, 1)
	wait.Until(s.t, "the claim that comes later", func() bool { return ana.plan(c).Ready == denied })
	return p
}

// overlap starts two runs at once whose dead letters are the same, and one more in the second.
func (s *bulkRuns) overlap(c command, p plan) (first, second run) {
	s.t.Helper()
	wider := c
	wider.Filter = filter{Team: "faturamento"}
	of := s.by("bruno").plan(wider)
	var running sync.WaitGroup
	var errFirst, errSecond error
	running.Go(func() {
		c.Token = p.Token
		_, errFirst = s.by("ana").ask("/bulk-runs", c, http.StatusCreated, &first)
	})
	running.Go(func() {
		wider.Token = of.Token
		_, errSecond = s.by("bruno").ask("/bulk-runs", wider, http.StatusCreated, &second)
	})
	running.Wait()
	if errFirst != nil || errSecond != nil {
		s.t.Fatalf("two runs at once: %v, %v", errFirst, errSecond)
	}
	return first, second
}

// interferes in the run that was faster to have the dead letters, by decisions on single ones that it has not come to yet, the
// last of them. It returns which.
func (s *bulkRuns) interferes(runs ...run) (alone map[string]bool) {
	s.t.Helper()
	bruno := s.by("bruno")
	faster := ""
	for _, r := range runs {
		r = bruno.awaitRun(r.ID, "the run to begin", func(r *run) bool { return r.State != "preparing" })
		if r.Total-r.Counts["refused"] > denied/2 {
			faster = r.ID
		}
	}
	if faster == "" {
		s.t.Fatal("neither of two runs has the dead letters of both")
	}
	alone = make(map[string]bool)
	all := bruno.items(faster)
	for _, i := range all[len(all)-3:] {
		var l deadLetter
		if _, err := bruno.ask("/dead-letters/"+i.DeadLetterID+"/discard", map[string]string{"reason": "paciente desistiu"}, http.StatusOK, &l); err != nil {
			s.t.Error(err)
		}
		alone[i.DeadLetterID] = true
	}
	return alone
}

// expectShared holds that two overlapping runs decided on each dead letter once, and left those alone that somebody else did.
func (s *bulkRuns) expectShared(first, second string, alone map[string]bool) {
	s.t.Helper()
	bruno := s.by("bruno")
	by := make(map[string]string)
	for _, id := range []string{first, second} {
		r := bruno.awaitRun(id, "the end of both runs", func(r *run) bool {
			return r.State == "done" && r.Counts["planned"]+r.Counts["decided"]+r.Counts["taken"] == 0
		})
		sum := 0
		for _, n := range r.Counts {
			sum += n
		}
		if sum != r.Total {
			s.t.Errorf("the counts %v are not the total of %d", r.Counts, r.Total)
		}
		for _, i := range bruno.items(id) {
			switch {
			case i.Outcome == "refused" && i.Code != "in_other_run" && !(alone[i.DeadLetterID] && i.Code == "invalid_retry_state"):
				s.t.Errorf("%+v: refused without a reason", i)
			case i.Outcome == "refused":
			case alone[i.DeadLetterID] || by[i.DeadLetterID] != "":
				s.t.Errorf("%+v: decided on by run %q too, or by a person", i, by[i.DeadLetterID])
			case i.Outcome != "recovered":
				s.t.Errorf("%+v: expected it recovered", i)
			default:
				by[i.DeadLetterID] = id
			}
		}
		l := s.ledger(id)
		if len(l.twice) > 0 {
			s.t.Errorf("decided on twice: %v", l.twice)
		}
	}
	if want := denied - len(alone); len(by) != want { // one was discarded before, one came later
		s.t.Errorf("%d were decided on by the runs, expected %d", len(by), want)
	}
}
