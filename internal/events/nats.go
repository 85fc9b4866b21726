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
	// dialTime bounds one try to connect, reconnectPause is between two of them.
	dialTime       = 2 * time.Second
	reconnectPause = time.Second
	// pingEvery finds a server that is gone without a word: after two pings without an answer.
	pingEvery = 10 * time.Second
)

// contentType of a CloudEvent as a whole, by the NATS protocol binding's structured mode.
const contentType = "application/cloudevents+json"

// Sink sends events to NATS JetStream. It connects when it is first needed, again for ever, and is safe for
// concurrent use. Its errors mean: try again. They hold neither user nor password.
type Sink struct {
	url, name string
	host      string

	mu    sync.Mutex
	nc    *nats.Conn
	js    jetstream.JetStream
	ready bool // the stream was there when last looked for
}

// NewSink prepares a Sink for a server, nats://user:password@host:4222 or tls://…; name is the connection's among
// the server's others. It does not connect.
func NewSink(address, name string) (*Sink, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "nats" && u.Scheme != "tls") || u.Hostname() == "" {
		return nil, errors.New("the events' URL is not one of a NATS server, expected nats://host:4222 or tls://host:4222, with user:password@ before the host where there is one")
	}
	return &Sink{url: address, name: name, host: u.Host}, nil
}

// Host is where the events go, with nothing secret in it.
func (s *Sink) Host() string { return s.host }

// Publish sends one event and returns when the stream has taken it, or had taken it before: that is durable as far
// as the server's own settings make it. An error says that it may not be there; sending it again is safe. It ends
// with ctx.
func (s *Sink) Publish(ctx context.Context, m *journal.Message) error {
	js, err := s.stream(ctx)
	if err != nil {
		return fmt.Errorf("send events to %s: %w", s.host, err)
	}
	event := &nats.Msg{Subject: Subject(m.Type), Header: nats.Header{"content-type": []string{contentType}}, Data: []byte(m.Body)}
	_, err = js.PublishMsg(ctx, event, jetstream.WithMsgID(m.ID), jetstream.WithExpectStream(Stream), jetstream.WithRetryAttempts(0))
	if err != nil {
		s.doubt()
		return fmt.Errorf("send an event of type %s to %s: %w", m.Type, s.host, err)
	}
	return nil
}

// stream connects and looks for the stream, where that is not done.
func (s *Sink) stream(ctx context.Context) (jetstream.JetStream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.connect(); err != nil {
		return nil, err
	}
	if !s.nc.IsConnected() {
		return nil, notConnected(s.nc.LastError())
	}
	if !s.ready {
		if err := ensureStream(ctx, s.js); err != nil {
			return nil, err
		}
		s.ready = true
	}
	return s.js, nil
}

// doubt has the stream looked for before the next event.
func (s *Sink) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = false
}

func notConnected(why error) error {
	if why == nil {
		return errors.New("not connected")
	}
	return fmt.Errorf("not connected: %w", why)
}

// connect once; from then on the connection looks after itself.
func (s *Sink) connect() error {
	if s.nc != nil {
		return nil
	}
	nc, err := nats.Connect(s.url,
		nats.Name(s.name), nats.Timeout(dialTime), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectPause),
		nats.IgnoreAuthErrorAbort(), // credentials may be mended on the server
		nats.ReconnectBufSize(-1),   // the outbox is the buffer
		nats.ErrorHandler(ignore),   // its default prints; callers get the error of their own event
	)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return fmt.Errorf("use JetStream: %w", err)
	}
	s.nc, s.js = nc, js
	return nil
}

func ignore(*nats.Conn, *nats.Subscription, error) {}

// Close ends the connection. Publish connects again.
func (s *Sink) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nc != nil {
		s.nc.Close()
	}
	s.nc, s.js, s.ready = nil, nil, false
}
