package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"retry-worker/internal/api"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
)

const (
	// lookEvery is how often the people look for dead letters, and so what one takes to decide; the fastest there ever
	// was.
	lookEvery = 300 * time.Millisecond
	// askTime bounds one request; the jobs of the samples wait for it, and have more.
	askTime = 5 * time.Second
	// mostPages of the list that a look goes through: the samples' dead letters are the newest.
	mostPages = 10
)

// Ask sends a request to the worker's API, below /api/v1, and returns the answer's body, a JSON object. body nil asks
// by GET. Its error says in one line what to do.
type Ask func(ctx context.Context, path string, body any) ([]byte, error)

// people decide on the samples' dead letters through the worker's API, as whoever looks at the console does. What they
// leave is for the person who looks at the screen. Its methods want the players' lock, but for work, look and take.
type people struct {
	*players
	left    []*progress
	refused map[string]bool // dead letters of which a refusal was told
}

// work until ctx ends, or the API has not answered for so long that it never will.
func (p *people) work(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for heard := time.Now(); ; {
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil
		}
		err := p.look(ctx)
		switch {
		case err == nil:
			heard = time.Now()
		case time.Since(heard) >= patience:
			return fmt.Errorf("the people cannot decide through the worker's API: %w", err)
		}
	}
}

// look at the open dead letters, then at those that were left and are open no more.
func (p *people) look(ctx context.Context) error {
	open := make(map[string]bool)
	cursor := ""
	for range mostPages {
		var page api.Page[api.DeadLetter]
		if err := p.get(ctx, "/dead-letters?limit=200"+cursor, &page); err != nil {
			return err
		}
		for i := range page.Items {
			open[page.Items[i].ID] = true
			p.take(ctx, &page.Items[i])
		}
		if page.Next == nil {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(*page.Next)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.left {
		if open[g.letter] {
			continue
		}
		if err := p.lookAgain(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

func (p *people) get(ctx context.Context, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	text, err := p.Ask(ctx, path, nil)
	if err == nil {
		err = json.Unmarshal(text, answer)
	}
	return err
}

// take decides on a sample's dead letter, or leaves it. One whose process has not come to its review task yet comes
// again at the next look.
func (p *people) take(ctx context.Context, l *api.DeadLetter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.samples[l.Subject.ID]
	switch {
	case g == nil || l.Process != deadletter.Waiting:
	case g.Left && p.Invitation != "":
		p.leave(g, l)
	default:
		p.decide(ctx, g, l)
	}
}

// decide lets the work be tried again at once, lets it go, or closes what the portal has. The next try waits for the lock, so that it is told
// later.
func (p *people) decide(ctx context.Context, g *progress, l *api.DeadLetter) {
	path, decision := "/dead-letters/"+l.ID+"/discard", map[string]any{"reason": "demonstration: not worth another try"}
	switch {
	case g.Discard:
	case g.Protocol != "":
		path = "/dead-letters/" + l.ID + "/accept"
		decision = map[string]any{"reason": "demonstration: looked up at the portal", "protocolNumber": g.Protocol}
	default:
		path = "/dead-letters/" + l.ID + "/retry"
		decision = map[string]any{"reason": "demonstration: the cause is corrected", "when": "now",
			"forceRetry": l.ForceNeeded}
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if _, err := p.Ask(ctx, path, decision); err != nil {
		if !p.refused[l.ID] && ctx.Err() == nil {
			p.refused[l.ID] = true
			p.story.say(g.Sample, "review refused: %v", err)
		}
		return
	}
	g.corrected()
	p.story.reviewed(g, l)
}

// leave a dead letter for the person who looks at the screen.
func (p *people) leave(g *progress, l *api.DeadLetter) {
	if g.letter == l.ID {
		return
	}
	if g.letter == "" {
		p.left = append(p.left, g)
	}
	g.letter, g.verdict, g.moved = l.ID, nil, false
	g.corrected() // whatever that person does about it
	p.story.left(g, l)
}

// lookAgain tells what that person has decided meanwhile, and passes the time until the next try.
func (p *people) lookAgain(ctx context.Context, g *progress) error {
	if g.verdict != nil {
		p.passTime(ctx, g)
		return nil
	}
	var l api.DeadLetter
	if err := p.get(ctx, "/dead-letters/"+g.letter, &l); err != nil || l.Review == nil {
		return err
	}
	g.verdict, g.triesBefore = l.Review, g.tries
	p.story.judged(g, p.waits(g))
	return nil
}

// waits returns how long it is, by the worker's clock, until the next try of what a person has decided on.
func (p *people) waits(g *progress) time.Duration {
	if p.Clock == nil {
		return time.Until(nextRetry(g.verdict))
	}
	return nextRetry(g.verdict).Sub(p.Clock.Now())
}

// nextRetry of a verdict; the zero time on a discard.
func nextRetry(v *api.Review) (t time.Time) {
	if v.NextRetryTime != nil {
		t, _ = decision.ParseInstant(*v.NextRetryTime) // the API's own
	}
	return t
}

// passTime moves the clock to the next try where that has to wait.
func (p *people) passTime(ctx context.Context, g *progress) {
	wait := p.waits(g)
	if p.Clock == nil || g.moved || g.tries > g.triesBefore || wait < time.Second {
		return
	}
	g.moved = true
	wait = wait.Truncate(time.Second) + time.Second
	p.story.note("--- %s waits for its next %s. The demo moves the clock %s ahead. ---", g.ID, g.process.Work.Try,
		told(wait))
	if err := p.Clock.Add(ctx, wait); err != nil {
		p.story.note("%v", err)
	}
}
