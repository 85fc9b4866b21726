package events_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"retry-worker/e2e/harness"
	server "retry-worker/e2e/harness/nats"
	"retry-worker/internal/events"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

func TestMain(m *testing.M) { harness.Main(m) }

func newSink(t testing.TB, url string) *events.Sink {
	t.Helper()
	s, err := events.NewSink(url, "test")
	testkit.Must(t, err)
	t.Cleanup(s.Close)
	return s
}

// send an event within the time that a relay gives it.
func send(s *events.Sink, m journal.Message) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return s.Publish(ctx, &m)
}

// eventually sends an event until it is taken.
func eventually(t *testing.T, s *events.Sink, m journal.Message) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(30 * time.Second)
	for {
		err := send(s, m)
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("it is not taken: %s", err)
		}
	}
}

func event(id, eventType string) journal.Message {
	return journal.Message{ID: id, Queue: events.Queue, Key: "k", Type: eventType, Body: `{"specversion":"1.0"}`}
}

func info(t *testing.T, js jetstream.JetStream) *jetstream.StreamInfo {
	t.Helper()
	s, err := js.Stream(t.Context(), events.Stream)
	testkit.Must(t, err)
	return s.CachedInfo()
}

func TestSinkMakesTheStreamAndSends(t *testing.T) {
	n := server.New(t, server.Settings{User: "ana", Password: "p@ss/w"})
	s, js := newSink(t, n.URL()), n.JetStream(t)
	for _, m := range []journal.Message{event("1", "RetryScheduled"), event("2", events.AuditRecorded), event("1", "RetryScheduled")} {
		testkit.Must(t, send(s, m))
	}
	i := info(t, js)
	if i.State.Msgs != 2 {
		t.Errorf("%d messages are in the stream, want 2: one came twice", i.State.Msgs)
	}
	if i.Config.Discard != jetstream.DiscardNew || i.Config.Storage != jetstream.FileStorage {
		t.Errorf("the stream is %+v", i.Config)
	}
	stream, _ := js.Stream(t.Context(), events.Stream)
	for sequence, subject := range map[uint64]string{1: "retry.events.RetryScheduled", 2: "retry.audit"} {
		m, err := stream.GetMsg(t.Context(), sequence)
		if err != nil || m.Subject != subject || m.Header.Get("content-type") != "application/cloudevents+json" || string(m.Data) != `{"specversion":"1.0"}` {
			t.Errorf("message %d is %+v, %v", sequence, m, err)
		}
	}
}

// TestStreamOfAnOwner: it is used as it is, or refused in one line that says what to do.
func TestStreamOfAnOwner(t *testing.T) {
	n := server.New(t, server.Settings{})
	js := n.JetStream(t)
	for name, test := range map[string]struct {
		config jetstream.StreamConfig
		event  string // a type that it does not take; empty: it is used
		says   string
	}{
		"wider":          {jetstream.StreamConfig{Subjects: []string{"retry.>"}, MaxMsgs: 1000}, "", ""},
		"by tokens":      {jetstream.StreamConfig{Subjects: []string{"retry.*", "retry.*.*"}}, "", ""},
		"one type":       {jetstream.StreamConfig{Subjects: []string{"retry.audit", "retry.events.RetryScheduled"}}, "RetryRecovered", "add the subject retry.events.RetryRecovered to the stream RETRY, or remove"},
		"too long":       {jetstream.StreamConfig{Subjects: []string{"retry.audit.>", "retry.events.*"}}, events.AuditRecorded, "add the subject retry.audit to"},
		"no audit":       {jetstream.StreamConfig{Subjects: []string{"retry.events.>"}}, events.AuditRecorded, "add the subject retry.audit to"},
		"other subjects": {jetstream.StreamConfig{Subjects: []string{"sales"}}, "RetryScheduled", "add the subject retry.events.RetryScheduled to"},
		"deaf":           {jetstream.StreamConfig{Subjects: []string{"retry.>"}, NoAck: true}, "RetryScheduled", "acknowledges nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			test.config.Name = events.Stream
			var refused error
			wait.Until(t, "the stream to be made", func() bool { // the server may still remove the last one's files
				_, refused = js.CreateStream(t.Context(), test.config)
				return refused == nil
			}, func() string { return fmt.Sprint(refused) })
			before := info(t, js).Config
			err := send(newSink(t, n.URL()), event("1", cmp.Or(test.event, "RetryScheduled")))
			switch {
			case test.says == "" && err != nil:
				t.Error(err)
			case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "\n")):
				t.Errorf("says %v, want one line with %q", err, test.says)
			}
			if after := info(t, js).Config; strings.Join(after.Subjects, " ") != strings.Join(before.Subjects, " ") || after.MaxMsgs != before.MaxMsgs {
				t.Errorf("the stream was changed: %+v", after)
			}
			testkit.Must(t, js.DeleteStream(t.Context(), events.Stream))
		})
	}
}

// TestStreamIsMended: the sink finds out by itself that the stream was taken away, or its subjects given back.
func TestStreamIsMended(t *testing.T) {
	n := server.New(t, server.Settings{})
	s, js := newSink(t, n.URL()), n.JetStream(t)
	testkit.Must(t, send(s, event("1", "RetryScheduled")))
	testkit.Must(t, js.DeleteStream(t.Context(), events.Stream))
	eventually(t, s, event("2", "RetryScheduled"))
	wrong := jetstream.StreamConfig{Name: events.Stream, Subjects: []string{"retry.events.>"}}
	_, err := js.UpdateStream(t.Context(), wrong)
	testkit.Must(t, err)
	_ = send(s, event("3", events.AuditRecorded))
	if err := send(s, event("3", events.AuditRecorded)); err == nil || !strings.Contains(err.Error(), "add the subject retry.audit") {
		t.Errorf("says %v", err)
	}
	wrong.Subjects = append(wrong.Subjects, "retry.audit")
	_, err = js.UpdateStream(t.Context(), wrong)
	testkit.Must(t, err)
	eventually(t, s, event("3", events.AuditRecorded))
}

func TestSubjectOfAnotherStream(t *testing.T) {
	n := server.New(t, server.Settings{})
	js := n.JetStream(t)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "HOSPITAL", Subjects: []string{"retry.>"}})
	testkit.Must(t, err)
	if err := send(newSink(t, n.URL()), event("1", "RetryScheduled")); err == nil || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("says %v", err)
	}
}

func TestNoJetStream(t *testing.T) {
	n := server.New(t, server.Settings{NoJetStream: true})
	err := send(newSink(t, n.URL()), event("1", "RetryScheduled"))
	if err == nil || !strings.Contains(err.Error(), "no JetStream for this account; enable it") {
		t.Errorf("says %v", err)
	}
}

// TestServerIsNotThere: the error comes soon, shows no password, and the sink finds the server when it comes.
func TestServerIsNotThere(t *testing.T) {
	n := server.New(t, server.Settings{User: "ana", Password: "hunter2"})
	wrong := newSink(t, strings.Replace(n.URL(), "hunter2", "wrong-word", 1))
	right := newSink(t, n.URL())
	wait.Until(t, "the server's word on a wrong password", func() bool {
		err := send(wrong, event("1", "RetryScheduled"))
		if err == nil || strings.Contains(err.Error(), "wrong-word") || strings.Contains(err.Error(), "ana") {
			t.Fatalf("a wrong password says %v", err)
		}
		return strings.Contains(strings.ToLower(err.Error()), "authorization") // not connected at first
	})
	n.Kill()
	wait.Until(t, "an error that comes soon, once the connection's end was seen", func() bool {
		began := time.Now()
		err := send(right, event("1", "RetryScheduled"))
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "ana") {
			t.Fatalf("a server that is not there says %v", err)
		}
		return time.Since(began) < 3*time.Second
	})
	testkit.Must(t, n.Restart(t.Context()))
	eventually(t, right, event("1", "RetryScheduled"))
	n.Kill()
	if err := send(right, event("2", "RetryScheduled")); err == nil {
		t.Error("a killed server took it")
	}
	testkit.Must(t, n.Restart(t.Context()))
	eventually(t, right, event("2", "RetryScheduled"))
	eventually(t, right, event("1", "RetryScheduled")) // it knows the ids it took before
	if i := info(t, n.JetStream(t)); i.State.Msgs != 2 {
		t.Errorf("%d messages, want 2", i.State.Msgs)
	}
}

func TestTooLargeForTheServer(t *testing.T) {
	n := server.New(t, server.Settings{MaxPayload: 2000})
	s := newSink(t, n.URL())
	m := event("1", "RetryScheduled")
	m.Body = strings.Repeat("x", 5000)
	if err := send(s, m); err == nil || !strings.Contains(err.Error(), "maximum payload") {
		t.Errorf("says %v", err)
	}
	if err := send(s, event("2", "RetryScheduled")); err != nil {
		t.Errorf("a smaller one fails after it: %s", err)
	}
}

func TestURLs(t *testing.T) {
	for _, bad := range []string{"", "nats://", "http://h:4222", "127.0.0.1:4222", "nats://user:secret@h:port", "nats://user:secret@/"} {
		if _, err := events.NewSink(bad, "x"); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q says %v", bad, err)
		}
	}
}
