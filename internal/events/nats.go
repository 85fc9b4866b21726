package events

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
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

// Sink sends events to NATS JetStream. It reconnects for ever, and is safe for concurrent use. Its errors mean that the
// caller should try again. They hold neither user nor password.
type Sink struct {
	host string
	nc   *nats.Conn
	js   jetstream.JetStream
	// ready reports whether the stream was found and no call failed since.
	ready atomic.Bool
}

// NewSink returns a Sink for a server, nats://user:password@host:4222 or tls://…, which may be down. name identifies
// the connection on the server.
func NewSink(address, name string) (*Sink, error) {
	return connect(address, name,
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectPause),
		nats.IgnoreAuthErrorAbort(), // credentials may be corrected on the server
		nats.ReconnectBufSize(-1),   // the outbox is the buffer
		// The default handler prints; callers get their own errors.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	)
}

func connect(address, name string, options ...nats.Option) (*Sink, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "nats" && u.Scheme != "tls") || u.Hostname() == "" {
		return nil, errors.New("the events' URL is not one of a NATS server, expected nats://host:4222 or " +
			"tls://host:4222, with user:password@ before the host where there is one")
	}
	nc, err := nats.Connect(address, append(options, nats.Name(name), nats.Timeout(dialTime))...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", u.Host, err)
	}
	js, err := jetstream.New(nc)
	return &Sink{host: u.Host, nc: nc, js: js}, err
}

// Publish sends one event and returns when the stream has taken it, or had it already. How durable it is then depends
// on the server's settings. After an error it may be missing; sending it again is safe. Publish ends with ctx.
func (s *Sink) Publish(ctx context.Context, m *journal.Message) error {
	if err := s.ensureReady(ctx); err != nil {
		return fmt.Errorf("send events to %s: %w", s.host, err)
	}
	event := &nats.Msg{Subject: Subject(m.Type), Header: nats.Header{"content-type": []string{contentType}},
		Data: []byte(m.Body)}
	_, err := s.js.PublishMsg(ctx, event, jetstream.WithMsgID(m.ID), jetstream.WithExpectStream(Stream),
		jetstream.WithRetryAttempts(0))
	if err != nil {
		s.ready.Store(false)
		if errors.Is(err, jetstream.ErrNoStreamResponse) {
			err = fmt.Errorf("%w; add the subject %s to the stream %s, or remove the stream and it is created anew", err,
				event.Subject, Stream)
		}
		return fmt.Errorf("send an event of type %s to %s: %w", m.Type, s.host, err)
	}
	return nil
}

// ensureReady looks for the stream, unless that is done.
func (s *Sink) ensureReady(ctx context.Context) error {
	if !s.nc.IsConnected() {
		if err := s.nc.LastError(); err != nil {
			return fmt.Errorf("not connected: %w", err)
		}
		return errors.New("not connected")
	}
	if s.ready.Load() {
		return nil
	}
	err := ensureStream(ctx, s.js)
	s.ready.Store(err == nil)
	return err
}

// Check connects to a server once, and asks it for JetStream. It creates nothing.
func Check(ctx context.Context, address, name string) error {
	s, err := connect(address, name)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err = s.js.AccountInfo(ctx); err != nil {
		return fmt.Errorf("use JetStream at %s: %w", s.host, err)
	}
	return nil
}

// Close closes the connection.
func (s *Sink) Close() { s.nc.Close() }

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
