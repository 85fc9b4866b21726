package journal_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
)

// clinic plays claims against a journal whose clock it sets.
type clinic struct {
	t     *testing.T
	store *testkit.Memory
	j     *journal.Journal
	now   time.Time
	key   int64
}

func openClinic(t *testing.T) *clinic {
	c := &clinic{t: t, store: testkit.NewMemory(), now: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)}
	c.j = testkit.StartJournal(t, c.store, func() time.Time { return c.now })
	return c
}

// sums are all but those of causes.
func (c *clinic) sums() []journal.Sum {
	c.t.Helper()
	all, err := c.store.Sums(c.t.Context(), 0)
	testkit.Must(c.t, err)
	return all
}

func (c *clinic) subject(id string) journal.Subject {
	return journal.Subject{Tenant: journal.DefaultTenant, Policy: decision.DefaultPolicy, ID: id}
}

// fails analyses a failure of the claim, at the next instant.
func (c *clinic) fails(id, text string, count int) journal.Recorded {
	c.t.Helper()
	p := new(*decisiontest.TISSSubmission())
	p.Context = []decision.ContextField{{Variable: "value", Type: decision.ContextMoney}}
	f, r := p.Read(decision.Variables{ID: decision.Text(id), Error: decision.Text(text), RetryCount: decision.Value(strconv.Itoa(count)),
		Context: []decision.Value{"10.5"}})
	if r != nil {
		c.t.Fatal(r)
	}
	c.key++
	a := &journal.Analysis{
		Subject: c.subject(id), JobKey: c.key, ElementInstanceKey: c.key, ProcessInstanceKey: 1, Rule: decision.RNBIL005,
		Policy: p, Failure: &f, Error: text, ReceivedAt: c.now.Add(-3 * time.Millisecond),
	}
	recorded, err := c.j.Analyze(c.t.Context(), a)
	testkit.Must(c.t, err)
	return recorded
}

// TestP99: of a hundred decisions one may take longer.
func TestP99(t *testing.T) {
	now := time.Now()
	for slow, want := range map[int64]float64{1: 0.001, 2: 1} {
		took := func(bucket, n int64) journal.Sum {
			return journal.Sum{Name: journal.SumTook, Policy: "p", Slot: journal.SlotOf(now), Bucket: bucket, N: n}
		}
		all := statistics.All([]journal.Sum{took(1000, 100-slow), took(1_000_000, slow)}, nil, now)
		i := slices.IndexFunc(all, func(k statistics.KPI) bool { return k.Name == "processing_time_p99" })
		if got := *all[i].Value; got != want {
			t.Errorf("where %d of 100 take a second the figure is %v, want %v", slow, got, want)
		}
	}
}

// TestFiguresBehindAClockThatLeapt: what it stamped a month ahead is in no window before that.
func TestFiguresBehindAClockThatLeapt(t *testing.T) {
	c := openClinic(t)
	for _, ahead := range []time.Duration{30 * 24 * time.Hour, time.Minute, 0} { // another machine is a little ahead
		c.now = c.now.Add(ahead)
		c.fails(claim(int(ahead)), "AUTHORIZATION_DENIED", 0)
		c.now = c.now.Add(-ahead)
	}
	for _, k := range statistics.All(c.sums(), nil, c.now) {
		if k.Name == "permanent_rate" && k.Samples != 2 {
			t.Errorf("%s is made of %d, want 2", k.Name, k.Samples)
		}
	}
}

// TestEveryFigureOfR19: each has its window, and the targets and alerts of the table.
func TestEveryFigureOfR19(t *testing.T) {
	want := map[string]string{
		"success_rate":           "24 h; 005 target >= 0.8; 004 target >= 0.85",
		"time_to_success_mean":   "24 h; 005 target <= 120",
		"time_to_success_median": "24 h; 004 target <= 60",
		"retries_to_success":     "24 h; 004 target <= 1.2",
		"permanent_rate":         "168 h; 005 target < 0.1; 005 alert > 0.15; 004 alert > 0.1",
		"exhausted_rate":         "168 h; 005 target < 0.05; 004 target <= 0.03; 005 alert > 0.05",
		"at_maximum_rate":        "168 h; 004 alert > 0.05",
		"backoff_mean":           "24 h; 004 alert > 30",
		"processing_time_p99":    "24 h; 005 alert > 1",
		"already_accepted":       "168 h",
	}
	got := map[string]string{}
	for _, k := range statistics.All(nil, []string{"p"}, time.Now()) {
		text := fmt.Sprintf("%g h", k.Window)
		for _, g := range k.Goals {
			text += fmt.Sprintf("; %s %s %s %g", strings.TrimPrefix(string(g.Rule), "RN-BIL-"), g.Kind, g.Compare, g.Limit)
		}
		if got[k.Name] = text; k.Value != nil || k.Samples != 0 {
			t.Errorf("%s has a value where nothing happened: %+v", k.Name, k)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestOneCauseOnePattern: what differs from case to case is no part of a cause.
func TestOneCauseOnePattern(t *testing.T) {
	for want, texts := range map[string][]string{
		// Of these telephones one passes for a card by its check digit.
		"recusada para recipient #":        {"Recusada para recipient 5511912345678", "Recusada para recipient 5511912345601", "Recusada para recipient 12345"},
		"documento # inválido":             {"Documento 529.982.247-25 inválido", "Documento 4111111111111111 inválido", "Documento 12345 inválido"},
		"parado desde # de # de # às #":    {"Parado desde 3 de fevereiro de 2026 às 10:00", "Parado desde 21 de março de 2025 às 9h"},
		"parado desde # # de # de #":       {"Parado desde segunda-feira, 2 de fevereiro de 2026", "Parado desde ter., 12 de mar. de 2024"},
		"down since # # # # # gmt":         {"Down since Mon, 02 Feb 2026 10:00:00 GMT", "Down since Tue, 13 May 2025 09:59:59 GMT"},
		"down since # # # # #":             {"Down since Mon Feb  2 10:00:00 2026", "Down since Fri Dec 31 09:59:59 2027"},
		"down since # #":                   {"Down since 10:00 AM", "Down since 1:07 pm"},
		"you may retry de segunda a sexta": {"You may retry, de segunda a sexta"},
	} {
		for _, text := range texts {
			got := journal.CauseOf("p", "", redact.Line(text, 1000)).Pattern
			if got != want {
				t.Errorf("%q has the pattern %q, want %q", text, got, want)
			}
		}
	}
}

// TestCauseIsTheRule: rules that share a reason are causes of their own, and what the ids of codes were they stay.
func TestCauseIsTheRule(t *testing.T) {
	of := func(rule string) *journal.Fingerprint { return journal.CauseOf("p", rule, "TIMEOUT") }
	code := of("TIMEOUT")
	if code.ID != "00b9937ebbe72cf7" { // what a worker of the first version kept
		t.Errorf("the code's fingerprint is %s", code.ID)
	}
	login, certificate := of("tiss-login"), of("api-key")
	if login.ID == certificate.ID || login.Reason != "tiss-login" {
		t.Errorf("two rules are told as %+v and %+v", login, certificate)
	}
}
