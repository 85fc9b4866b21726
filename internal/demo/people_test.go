package demo

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/api"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// fakeAPI is a worker's API with some dead letters; those that were decided on are open no more.
type fakeAPI struct {
	mu      sync.Mutex
	letters []api.DeadLetter
	down    error
	refuses error // decisions
	asked   []string
}

func (a *fakeAPI) ask(_ context.Context, path string, body any) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id, _, _ := strings.Cut(strings.TrimPrefix(path, "/dead-letters/"), "/")
	place := slices.IndexFunc(a.letters, func(l api.DeadLetter) bool { return l.ID == id })
	switch {
	case a.down != nil:
		return nil, a.down
	case path == "/dead-letters?limit=200": // a page of one, to see that the next is asked for
		return page(a.letters[:min(1, len(a.letters))], "behind it")
	case path == "/dead-letters?limit=200&cursor=behind+it":
		return page(a.letters[min(1, len(a.letters)):], nil)
	case place < 0:
		return nil, errors.New("job_not_found: " + path)
	case body == nil:
		return json.Marshal(a.letters[place])
	}
	a.asked = append(a.asked, path+" "+jsonObject(body.(map[string]any)))
	if a.refuses == nil {
		a.letters[place].State = "decided"
	}
	return []byte("{}"), a.refuses
}

// page of those that are open.
func page(letters []api.DeadLetter, next any) ([]byte, error) {
	open := slices.DeleteFunc(slices.Clone(letters), func(l api.DeadLetter) bool { return l.State != "" })
	return json.Marshal(map[string]any{"items": open, "next": next})
}

func (a *fakeAPI) isDown(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = err
}

// cast is a demo's people with the samples of one process.
type cast struct {
	*players
	api  *fakeAPI
	out  strings.Builder
	jobs int64
}

func newCast(t *testing.T, invitation string, samples ...*Sample) *cast {
	t.Helper()
	p := claims()
	p.Samples = samples
	c := &cast{api: &fakeAPI{}}
	processes := []*Process{p}
	c.players = newPlayers(t.Context(), &Options{Ask: c.api.ask, Invitation: invitation}, newStory(&c.out, processes))
	for i := range samples {
		c.api.letters = append(c.api.letters, api.DeadLetter{ID: "letter-" + samples[i].ID, Subject: api.SubjectName{ID: samples[i].ID}, ResponsibleTeam: "cadastro", Process: "waiting"})
	}
	return c
}

// submit is one submission of a sample; it tells whether the portal took it.
func (c *cast) submit(t *testing.T, id string) bool {
	t.Helper()
	c.jobs++
	r := c.answer(c.samples[id].process, c.try)(t.Context(), &worker.Job{Key: c.jobs, Variables: `{"claimId":"` + id + `"}`})
	return r.Action == worker.Completed
}

func (c *cast) look(t *testing.T) {
	t.Helper()
	testkit.Must(t, c.people.look(t.Context()))
}

// told is all that was printed by now.
func (c *cast) told() string {
	c.story.print()
	return c.out.String()
}

// TestRefusedDecisionIsToldOnceAndTriedAgain: the process may not have come to its review task yet. Those whose process is on
// its way there, and strangers, are not decided on; the next page is asked for.
func TestRefusedDecisionIsToldOnceAndTriedAgain(t *testing.T) {
	c := newCast(t, "", &Sample{ID: "LATER"}, &Sample{ID: "A", Failures: times(9, Failure{Text: "TIMEOUT"})})
	c.api.letters[0].Process = "expected"
	c.api.letters = append(c.api.letters, api.DeadLetter{ID: "letter-STRANGE", Subject: api.SubjectName{ID: "STRANGE"}, Process: "waiting"})
	c.api.refuses = errors.New("invalid_retry_state: the process has not come to its review task yet")
	c.submit(t, "A")
	c.look(t)
	c.look(t)
	if c.submit(t, "A") {
		t.Error("the portal takes what nobody has corrected")
	}
	c.api.refuses = nil
	c.look(t)
	if said := c.told(); len(c.api.asked) != 3 || strings.Count(said, "review refused: invalid_retry_state") != 1 || !c.submit(t, "A") {
		t.Errorf("asked %d times, expected 3, and told:\n%s", len(c.api.asked), said)
	}
}

// TestLeftForThePersonAtTheScreen: nobody decides in that person's place, and what comes of the decision is told.
func TestLeftForThePersonAtTheScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t, "Open it.", &Sample{ID: "SENT", Failures: times(9, Failure{Text: "TIMEOUT"}), Left: true}, &Sample{ID: "GONE", Failures: texts("TIMEOUT"), Left: true})
		c.submit(t, "SENT")
		c.submit(t, "GONE")
		for range 3 {
			c.look(t)
		}
		if said := c.told(); strings.Count(said, "left for you") != 2 || len(c.api.asked) > 0 || c.story.waiting() != 0 || c.story.leftOver() != "2 of SUB_06" {
			t.Errorf("decided %v, %q is left over, told:\n%s", c.api.asked, c.story.leftOver(), said)
		}
		c.api.letters[0].Review = &api.Review{Decision: "reprocess", Reason: "data corrigida", By: "ana", NextRetryTime: journal.InstantOrNull(time.Now().Add(5 * time.Minute))}
		c.api.letters[1].Review = &api.Review{Decision: "discard", Reason: "paga à vista", By: "ana"}
		c.api.letters[0].State, c.api.letters[1].State = "reprocessing", "discarded"
		if !c.submit(t, "SENT") { // before anybody has looked
			t.Error("the portal refuses what that person corrected")
		}
		c.look(t)
		c.look(t)
		_, after, _ := strings.Cut(c.told(), "left for you\n")
		_, after, _ = strings.Cut(after, "left for you\n")
		want := `
SUB_06: claims
  SENT                reviewed by ana: "data corrigida"; the process goes on at 2000-01-01T00:05:00Z
                      submission 2: accepted by the portal after your review
  GONE                reviewed by ana: "paga à vista"; let go, and the process ends
`
		if after != want {
			t.Errorf("told\n%s\nwant\n%s", after, want)
		}
	})
}

// TestSilentAPIEndsTheDemo, but not at once: the worker may just be starting.
func TestSilentAPIEndsTheDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t, "", &Sample{ID: "A"})
		c.api.letters = nil
		c.api.isDown(errors.New("the answer of http://127.0.0.1:8095 is not that of a retry-worker's API (HTTP 404)"))
		ended := make(chan error, 1)
		go func() { ended <- c.people.work(t.Context()) }()
		time.Sleep(patience - time.Second)
		c.api.isDown(nil)
		time.Sleep(time.Second)
		c.api.isDown(errors.New("connection refused"))
		time.Sleep(patience - time.Second)
		synctest.Wait()
		if len(ended) > 0 {
			t.Errorf("it ended too early: %v", <-ended)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(ended) == 0 || !strings.HasSuffix((<-ended).Error(), "API: connection refused") {
			t.Error("it did not end")
		}
	})
}
