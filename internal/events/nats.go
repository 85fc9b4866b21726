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
	reconnectPause = 500 * time.Millisecond
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

	// preparing holds one: who connects, looks for the stream, or closes. nc and js are written by that one, with mu.
	preparing chan struct{}

	mu    sync.Mutex
	nc    *nats.Conn
	js    jetstream.JetStream
	ready bool // the stream was there when last looked for
	// alive ends when the connection is lost, and lose ends it: what waits for an answer then gets none.
	alive context.Context
	lose  context.CancelFunc
}

// NewSink prepares a Sink for a server, nats://user:password@host:4222 or tls://…; name is the connection's among
// the server's others. It does not connect.
func NewSink(address, name string) (*Sink, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "nats" && u.Scheme != "tls") || u.Hostname() == "" {
		return nil, errors.New("the events' URL is not one of a NATS server, expected nats://host:4222 or " +
			"tls://host:4222, with user:password@ before the host where there is one")
	}
	return &Sink{url: address, name: name, host: u.Host, preparing: make(chan struct{}, 1)}, nil
}

// Publish sends one event and returns when the stream has taken it, or had taken it before: that is durable as far
// as the server's own settings make it. An error says that it may not be there; sending it again is safe. It ends
// with ctx, and when the connection is lost.
func (s *Sink) Publish(ctx context.Context, m *journal.Message) error {
	js, alive, err := s.stream(ctx)
	if err != nil {
		return fmt.Errorf("send events to %s: %w", s.host, err)
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(alive, cancel)()
	event := &nats.Msg{Subject: Subject(m.Type), Header: nats.Header{"content-type": []string{contentType}},
		Data: []byte(m.Body)}
	_, err = js.PublishMsg(within, event, jetstream.WithMsgID(m.ID), jetstream.WithExpectStream(Stream),
		jetstream.WithRetryAttempts(0))
	switch {
	case err == nil:
		return nil
	case alive.Err() != nil && ctx.Err() == nil:
		err = errConnectionLost
	}
	s.doubt()
	return fmt.Errorf("send an event of type %s to %s: %w", m.Type, s.host, err)
}

var errConnectionLost = errors.New("the connection was lost")

// stream connects and looks for the stream, where that is not done. Who comes meanwhile waits, as long as ctx lets it.
func (s *Sink) stream(ctx context.Context) (jetstream.JetStream, context.Context, error) {
	if js, alive := s.current(); js != nil {
		return js, alive, nil
	}
	select {
	case s.preparing <- struct{}{}:
		defer func() { <-s.preparing }()
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("not connected: %w", ctx.Err())
	}
	if js, alive := s.current(); js != nil {
		return js, alive, nil
	}
	return s.prepare(ctx)
}

// current returns the stream where it is known to be there, and what ends with its connection.
func (s *Sink) current() (jetstream.JetStream, context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready || !s.nc.IsConnected() {
		return nil, nil
	}
	return s.js, s.alive
}

// prepare what current gives. One at a time.
func (s *Sink) prepare(ctx context.Context) (jetstream.JetStream, context.Context, error) {
	if s.nc == nil {
		if err := s.connect(); err != nil {
			return nil, nil, err
		}
	}
	if !s.nc.IsConnected() {
		return nil, nil, notConnected(s.nc.LastError())
	}
	if err := ensureStream(ctx, s.js); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
	if s.alive.Err() != nil { // it was lost, and is there again
		s.alive, s.lose = context.WithCancel(context.Background())
	}
	return s.js, s.alive, nil
}

// lost ends what waits for an answer of the connection.
func (s *Sink) lost(*nats.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose()
	s.ready = false // the connection that comes in its place has a context of its own
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
	s.mu.Lock()
	s.alive, s.lose = context.WithCancel(context.Background())
	s.mu.Unlock()
	nc, err := nats.Connect(s.url,
		nats.Name(s.name), nats.Timeout(dialTime), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectPause),
		nats.DisconnectErrHandler(s.lost),
		nats.IgnoreAuthErrorAbort(), // credentials may be mended on the server
		nats.ReconnectBufSize(-1),   // the outbox is the buffer
		// Its default prints; callers get the error of their own event.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return fmt.Errorf("use JetStream: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nc, s.js = nc, js
	return nil
}

// Check connects to the server once, and asks it for JetStream. It makes nothing there.
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

// Close ends the connection. Publish connects again.
func (s *Sink) Close() {
	s.preparing <- struct{}{}
	defer func() { <-s.preparing }()
	s.mu.Lock()
	nc := s.nc
	s.nc, s.js, s.ready = nil, nil, false
	s.mu.Unlock()
	if nc != nil {
		nc.Close()
	}
}
