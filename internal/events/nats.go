package events

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"retry-worker/internal/journal"
)

const (
	// dialTime bounds one try to connect, reconnectPause is the pause between two.
	dialTime       = 2 * time.Second
	reconnectPause = 500 * time.Millisecond
	// pingEvery is the pause between pings; after two without an answer the server is gone.
	pingEvery = 10 * time.Second
)

// contentType is that of a whole CloudEvent, in the NATS protocol binding's structured mode.
const contentType = "application/cloudevents+json"

// Sink sends events to NATS JetStream. It connects when first used, reconnects for ever, and is safe for concurrent
// use. Its errors mean that the caller should try again. They hold neither user nor password.
type Sink struct {
	url, name string
	host      string

	mu    sync.Mutex // held only for bounded calls
	nc    *nats.Conn
	js    jetstream.JetStream
	ready bool // the stream was found and no call failed since
}

// NewSink returns a Sink for a server, nats://user:password@host:4222 or tls://…, without connecting. name identifies
// the connection on the server.
func NewSink(address, name string) (*Sink, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "nats" && u.Scheme != "tls") || u.Hostname() == "" {
		return nil, errors.New("the events' URL is not one of a NATS server, expected nats://host:4222 or " +
			"tls://host:4222, with user:password@ before the host where there is one")
	}
	return &Sink{url: address, name: name, host: u.Host}, nil
}

// Publish sends one event and returns when the stream has taken it, or had it already. How durable it is then depends
// on the server's settings. After an error it may be missing; sending it again is safe. Publish ends with ctx.
func (s *Sink) Publish(ctx context.Context, m *journal.Message) error {
	js, err := s.stream(ctx)
	if err != nil {
		return fmt.Errorf("send events to %s: %w", s.host, err)
	}
	event := &nats.Msg{Subject: Subject(m.Type), Header: nats.Header{"content-type": []string{contentType}},
		Data: []byte(m.Body)}
	_, err = js.PublishMsg(ctx, event, jetstream.WithMsgID(m.ID), jetstream.WithExpectStream(Stream),
		jetstream.WithRetryAttempts(0))
	if err != nil {
		s.doubt()
		if errors.Is(err, jetstream.ErrNoStreamResponse) {
			err = fmt.Errorf("%w; add the subject %s to the stream %s, or remove the stream and it is created anew", err,
				event.Subject, Stream)
		}
		return fmt.Errorf("send an event of type %s to %s: %w", m.Type, s.host, err)
	}
	return nil
}

// stream connects and looks for the stream, unless that is done.
func (s *Sink) stream(ctx context.Context) (jetstream.JetStream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nc == nil {
		if err := s.connect(); err != nil {
			return nil, err
		}
	}
	if !s.nc.IsConnected() {
		if err := s.nc.LastError(); err != nil {
			return nil, fmt.Errorf("not connected: %w", err)
		}
		return nil, errors.New("not connected")
	}
	if !s.ready {
		if err := ensureStream(ctx, s.js); err != nil {
			return nil, err
		}
		s.ready = true
	}
	return s.js, nil
}

// doubt makes the next Publish look for the stream again.
func (s *Sink) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = false
}

// connect connects; from then on the connection restores itself.
func (s *Sink) connect() (err error) {
	s.nc, err = nats.Connect(s.url,
		nats.Name(s.name), nats.Timeout(dialTime), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectPause),
		nats.IgnoreAuthErrorAbort(), // credentials may be corrected on the server
		nats.ReconnectBufSize(-1),   // the outbox is the buffer
		// The default handler prints; callers get their own errors.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	s.js, err = jetstream.New(s.nc)
	return err
}

// Check connects to the server once, and asks it for JetStream. It creates nothing.
func (s *Sink) Check(ctx context.Context) error {
	nc, err := nats.Connect(s.url, nats.Name(s.name), nats.Timeout(dialTime))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", s.host, err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = js.AccountInfo(ctx)
	}
	if err != nil {
		return fmt.Errorf("use JetStream at %s: %w", s.host, err)
	}
	return nil
}

// Close closes the connection. Publish would connect again.
func (s *Sink) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nc != nil {
		s.nc.Close()
	}
	s.nc, s.ready = nil, false
}

// Stream is the name of the JetStream stream that takes the events.
const Stream = "RETRY"

const (
	// keptFor is how long a stream that we create keeps events. The audit's archive is the journal.
	keptFor = 30 * 24 * time.Hour
	// duplicateWindow is how long that stream remembers ids: longer than a crashed relay's lease and its successor's
	// repetition.
	duplicateWindow = 5 * time.Minute
)

// subjects are those of a stream that we create.
var subjects = []string{eventSubjects + "*", auditSubject}

// ensureStream creates the stream if there is none. An existing stream belongs to its owner: it is checked, never
// changed.
func ensureStream(ctx context.Context, js jetstream.JetStream) error {
	s, err := js.Stream(ctx, Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name: Stream, Description: "What the retry-worker recorded (CloudEvents)", Subjects: subjects,
			Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, MaxAge: keptFor,
			Discard:    jetstream.DiscardNew, // a full stream refuses events, and the outbox keeps them
			Duplicates: duplicateWindow,
		})
	}
	switch {
	case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse): // another process has just created it
		return fmt.Errorf("the stream %s is being made by another", Stream)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount),
		errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("the server offers no JetStream for this account; enable it: %w", err)
	case err != nil:
		return fmt.Errorf("look for the stream %s, or create it: %w", Stream, err)
	}
	if s.CachedInfo().Config.NoAck {
		return fmt.Errorf("the stream %s acknowledges nothing (no_ack), and events without that stay in the outbox; "+
			"change the stream", Stream)
	}
	return nil
}
