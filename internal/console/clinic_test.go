package console_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/access"
	"retry-worker/internal/console"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
	"retry-worker/internal/testkit"
)

// clinic is an API with tokens over a real journal and the real review, with a clock and a tokens file that the test
// moves.
type clinic struct {
	t        *testing.T
	url      string // of /api/v1
	now      time.Time
	engineUp time.Time // zero: the engine is down
	store    *testkit.Memory
	journal  *journal.Journal
	policies decision.Policies
	tokens   atomic.Pointer[access.Tokens]
	secrets  map[string]string // by the name of the token
	lines    *observer.ObservedLogs
	herd     *herd
	api      *console.API
	jobs     int64
}

// people of the clinic: each may what the one before may, and more.
var people = map[string]access.Role{"vera": access.Viewer, "otto": access.Operator, "ada": access.Admin}

func openClinic(t *testing.T, change ...func(*console.Options, *console.Journal)) *clinic {
	t.Helper()
	c := &clinic{t: t, now: now, store: testkit.NewMemory(), policies: decisiontest.Policies(), secrets: map[string]string{}}
	c.publish(people, time.Time{})
	c.journal = testkit.StartJournal(t, c.store, func() time.Time { return c.now })
	core, lines := observer.New(zapcore.InfoLevel)
	c.lines = lines
	o := console.Options{
		Now: func() time.Time { return c.now }, Policies: func() decision.Policies { return c.policies }, Log: zap.New(core),
		Tokens: c.tokens.Load,
	}
	m := console.Journal{Reader: c.store, Recorder: c.journal, DeadLetters: review.New(c.store, c.journal,
		func() decision.Policies { return c.policies }, func() time.Time { return c.now }, func() time.Time { return c.engineUp })}
	c.herd = newHerd(func() time.Time { return c.now })
	m.Groups, m.Bulk = c.herd, c.herd
	for _, f := range change {
		f(&o, &m)
	}
	c.api = console.New(o)
	c.api.Open(m)
	c.url = listen(t, c.api) + "/api/v1"
	return c
}

// publish puts a tokens file in force; who has a token already keeps it.
func (c *clinic) publish(roles map[string]access.Role, expires time.Time) {
	c.t.Helper()
	lines := ""
	for name, role := range roles {
		secret, token, err := access.NewToken(name, role, expires)
		if err != nil {
			c.t.Fatal(err)
		}
		c.secrets[name] = secret
		lines += token.Line() + "\n"
	}
	tokens, err := access.Parse("tokens", []byte(lines))
	if err != nil {
		c.t.Fatal(err)
	}
	c.tokens.Store(tokens)
}

// as is the header that shows somebody's token.
func (c *clinic) as(name string) func(*http.Request) {
	return header("Authorization", "Bearer "+c.secrets[name])
}

func (c *clinic) get(who, path string) answer {
	c.t.Helper()
	return get(c.t, c.url+path, c.as(who))
}

func (c *clinic) post(who, path, body string) answer {
	c.t.Helper()
	return post(c.t, c.url+path, body, c.as(who))
}

// letter is a new dead letter's id, for which a process waits: a claim that failed with that error after so many retries.
func (c *clinic) letter(claim, text string, retries int) string {
	c.t.Helper()
	id := c.unattended(claim, text, retries)
	c.jobs++
	job := journal.ReviewJob{Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: decision.DefaultPolicy, ID: claim}, DeadLetter: id, JobKey: c.jobs}
	if _, err := c.journal.ReviewSeen(c.t.Context(), &job); err != nil {
		c.t.Fatal(err)
	}
	return id
}

// unattended is one for which no process waits yet.
func (c *clinic) unattended(claim, text string, retries int) string {
	c.t.Helper()
	p := c.policies[decision.DefaultPolicy]
	f, rejection := p.Read(decision.Variables{ID: decision.Text(claim), Error: decision.Text(text), RetryCount: decision.Value(fmt.Sprint(retries))})
	if rejection != nil {
		c.t.Fatal(rejection)
	}
	c.jobs++
	a := &journal.Analysis{
		Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: p.Name, ID: claim}, JobKey: c.jobs, ElementInstanceKey: c.jobs,
		ProcessInstanceKey: 2251799813685000 + c.jobs, Rule: decision.RNBIL005, Policy: p, Failure: &f, Error: text, ReceivedAt: c.now,
	}
	a.Identity = journal.IdentityOf(a)
	if _, err := c.journal.Analyze(c.t.Context(), a); err != nil {
		c.t.Fatal(err)
	}
	story, _, err := c.store.Story(c.t.Context(), a.Subject)
	if err != nil || len(story.DeadLetters) == 0 {
		c.t.Fatalf("%q gave no dead letter (%v)", text, err)
	}
	return story.DeadLetters[len(story.DeadLetters)-1].ID
}

// permanent is a dead letter below the limit, exhausted one at it.
func (c *clinic) permanent(claim string) string { return c.letter(claim, "DUPLICATE_CLAIM", 2) }
func (c *clinic) exhausted(claim string) string { return c.letter(claim, "TIMEOUT", 5) }

// sample is shown in each group from now on.
func (c *clinic) sample(id string) {
	c.t.Helper()
	d, found, err := c.store.DeadLetter(c.t.Context(), id)
	if err != nil || !found {
		c.t.Fatalf("%s is not there (%v)", id, err)
	}
	c.herd.sample = d
}
