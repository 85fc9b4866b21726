package notify_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/clock"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/outbox"
	"retry-worker/internal/store/sqlite"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/web"
)

// office is a journal in a file, with a Sink and a relay over it, and real receivers. It lives in real time.
type office struct {
	*sqlite.DB
	t       *testing.T
	journal *journal.Journal
	sink    *notify.Sink
	logs    *observer.ObservedLogs
	inForce atomic.Pointer[catalogue.Catalogue]

	mu      sync.Mutex
	results []string
}

func openOffice(t *testing.T, c *catalogue.Catalogue, m *notify.Mailer) *office {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"))
	testkit.Must(t, err)
	t.Cleanup(func() { db.Close() })
	core, logs := observer.New(zap.DebugLevel)
	o := &office{DB: db, t: t, logs: logs}
	o.inForce.Store(c)
	o.journal = testkit.StartJournal(t, db, time.Now)
	o.sink = &notify.Sink{Catalogue: o.inForce.Load, Senders: notify.Senders{Mailer: m, Poster: notify.NewPoster(web.NewClient(loopback, "test"))}, Clock: clock.Machine{}, Log: zap.New(core),
		Add: func(_ string, _ float64, of ...string) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.results = append(o.results, of[0]+"/"+of[1]+" "+of[2])
		}}
	relay := outbox.New(deadletter.NoticeQueue, "test", db, o.journal.Published, o.sink, zap.New(core))
	relay.Patience = outbox.Patience{Message: notify.PublishTime, Hold: 2 * time.Second, Apart: true}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { relay.Run(ctx, ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return o
}

// put puts a notice into the outbox.
func (o *office) put(id, key string) {
	o.t.Helper()
	n := newsNotice()
	from := deadletter.Watermark{Team: decision.Team(id), Channel: key, Kind: deadletter.NewsNotice} // a mark of its own
	to := from
	to.At = time.Now()
	body := `{"type":"` + n.Type + `","timestamp":"` + n.Timestamp.Format(time.RFC3339) + `","data":{"team":"ti","new":{"count":1,"causes":1,"oldest":null,"otherCount":0},"open":{"count":1,"causes":1,"oldest":null,"otherCount":0}}}`
	moved, err := o.MoveWatermark(o.t.Context(), from, to, &journal.Message{ID: id, Queue: deadletter.NoticeQueue, Key: key, Type: n.Type, Body: body, At: time.Now()})
	if err != nil || !moved {
		o.t.Fatal(moved, err)
	}
}

func (o *office) tried() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.results)
}

func (o *office) waiting() []notify.Waiting {
	o.t.Helper()
	w, err := o.sink.Waiting(o.t.Context(), o.DB)
	testkit.Must(o.t, err)
	return w
}

// TestEachAddressGetsItOnce: an address that cannot take its message yet gets it later, one that is refused waits for a
// person to correct it, and neither holds up the others or has them told again.
func TestEachAddressGetsItOnce(t *testing.T) {
	b := openMailbox(t, mailOptions{})
	b.refuse("gone", 550)
	b.refuse("full", 452)
	names := []string{"a", "gone", "full"}
	o := openOffice(t, teams(t, map[string]string{"ti": "email: [a@hospital.example, gone@hospital.example, full@hospital.example]"}), b.mailer(notify.Plaintext))
	for _, name := range names {
		o.put(name, "ti/email:"+name+"@hospital.example")
	}
	wait.Until(t, "each was tried, some again", func() bool { return len(o.tried()) >= 7 })
	if w := o.waiting(); len(w) != 2 || !strings.Contains(w[0].Failure, "address 2 of 3: ") || !strings.Contains(w[0].Failure, "550") || !strings.Contains(w[1].Failure, "452") {
		t.Errorf("%+v waits", w)
	}
	b.set(func() { b.onRcpt = func(string) error { return nil } })
	wait.Until(t, "nothing waits", func() bool { return len(o.waiting()) == 0 })
	got := map[string]int{}
	for _, d := range b.deliveries() {
		got[strings.Join(d.to, " ")]++
	}
	if len(got) != len(names) || got["a@hospital.example"] != 1 || got["gone@hospital.example"] != 1 || got["full@hospital.example"] != 1 {
		t.Errorf("delivered to %v", got)
	}
	if r := o.tried(); !slices.Contains(r, "ti/email refused") || !slices.Contains(r, "ti/email failed") {
		t.Errorf("results %v", r)
	}
	told := o.logs.FilterMessageSnippet("could not be sent")
	if told.Len() != 2 {
		t.Errorf("that it is tried again is told %d times, not once for each that waits", told.Len())
	}
	for _, line := range told.All() {
		if says := line.ContextMap()["error"].(string); strings.Contains(says, "@") || strings.Contains(says, "gone") {
			t.Errorf("told: %s", says)
		}
	}
}

// pending are messages that wait.
type pending struct {
	journal.Outbox
	all []journal.Message
}

func (p pending) Pending(context.Context, string, int64, int) ([]journal.Message, error) {
	return p.all, nil
}

// TestSentByAnotherReplica: that a message could not be sent says nothing of the next, once another replica has sent
// it.
func TestSentByAnotherReplica(t *testing.T) {
	b := openMailbox(t, mailOptions{})
	b.refuse("ti@", 550)
	core, logs := observer.New(zap.DebugLevel)
	c := teams(t, map[string]string{"ti": mailed})
	sink := &notify.Sink{
		Catalogue: func() *catalogue.Catalogue { return c }, Senders: notify.Senders{Mailer: b.mailer(notify.Plaintext)}, Clock: clock.Machine{},
		Add: func(string, float64, ...string) {}, Log: zap.New(core),
	}
	message := func(id string) journal.Message {
		return journal.Message{ID: id, Queue: deadletter.NoticeQueue, Key: tiByMail, Body: "{}", At: time.Now()}
	}
	first, second := message("first"), message("second")
	if err := sink.Publish(t.Context(), &first); err == nil {
		t.Fatal("the first is sent")
	}
	for want, m := range map[string]journal.Message{"550": first, "": second} {
		w, err := sink.Waiting(t.Context(), pending{all: []journal.Message{m}})
		testkit.Must(t, err)
		if got := w[0].Failure; !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s waits because of %q, want %q", m.ID, got, want)
		}
	}
	b.set(func() { b.onRcpt = func(string) error { return nil } })
	testkit.Must(t, sink.Publish(t.Context(), &second))
	if n := logs.FilterMessage("a notice was sent").Len(); n != 1 {
		t.Errorf("it was told %d times that it is sent", n)
	}
}

// TestDropped: what nobody is to get any more is let go of, and told.
func TestDropped(t *testing.T) {
	b := openMailbox(t, mailOptions{})
	o := openOffice(t, teams(t, map[string]string{"ti": mailed}), b.mailer(notify.Plaintext))
	o.put("first", "ti/webhook")
	o.put("second", "nobody/email:a@hospital.example")
	o.put("third", "ti/email:left@hospital.example")
	wait.Until(t, "nothing waits", func() bool { return len(o.waiting()) == 0 })
	if n := o.logs.FilterMessage("a notice is not sent").Len(); n != 3 {
		t.Errorf("told %d times", n)
	}
	r := o.tried()
	if slices.Sort(r); !slices.Equal(r, []string{"ti/email dropped", "ti/webhook dropped"}) { // a team that is none is no label
		t.Errorf("results %v", r)
	}
	if n := len(b.deliveries()); n != 0 {
		t.Errorf("%d mails", n)
	}
}

// TestProblems: what keeps a team from being told is known before.
func TestProblems(t *testing.T) {
	c := teams(t, map[string]string{"ti": "email: [a@hospital.example]\nwebhook: {url: 'https://a.example', secretFile: " + secretFile(t, secretText) + "}"})
	if p := notify.Problems(c, true); len(p) != 0 {
		t.Errorf("problems %q", p)
	}
	broken := teams(t, map[string]string{"ti": mailed, "cadastro": "webhook: {url: 'https://a.example', secretFile: /nowhere/secret}"})
	if p := notify.Problems(broken, false); len(p) != 2 || !strings.HasPrefix(p[0], "the team cadastro ") || !strings.HasPrefix(p[1], "the team ti ") {
		t.Errorf("problems %q", p)
	}
}
