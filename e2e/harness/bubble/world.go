// Package bubble runs the development engine and the service in one bubble of testing/synctest. Both go by one
// logical clock, which jumps to whatever is due next: hours take as long as the work in them. What they agree on with
// others (time-outs, leases, pauses of I/O) goes by the bubble's own time, which passes whenever all wait.
package bubble

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"retry-worker/e2e/harness"
	"retry-worker/internal/app"
	"retry-worker/internal/config"
	"retry-worker/internal/engine/server"
	"retry-worker/internal/testkit"
	"retry-worker/internal/zeebe"
)

const (
	// grpcAddress and restAddress are the engine's.
	grpcAddress, restAddress = "127.0.0.1:26500", "127.0.0.1:8080"
	// moment is longer than the pauses between two looks at the journal.
	moment = 50 * time.Millisecond
	// shortest is the least step of the clock: the engine's has milliseconds.
	shortest = time.Millisecond
)

// Begin is where the clock begins: on a Friday morning in São Paulo.
var Begin = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// World is an engine and its services in a bubble.
type World struct {
	*Clock
	*testkit.Network
	// Conn is a gRPC connection to the engine.
	Conn *grpc.ClientConn

	t       *testing.T
	options server.Options
	engine  *server.Server
}

// Run runs a test in a bubble with an engine. Run sets the engine's clock and folder.
func Run(t *testing.T, o server.Options, play func(*testing.T, *World)) {
	o.Data = t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &World{t: t, options: o,
			Clock:   &Clock{ahead: time.Until(Begin), moved: make(chan struct{}), due: map[*time.Time]struct{}{}},
			Network: testkit.NewNetwork()}
		w.options.Now = w.Now
		w.startEngine()
		var err error
		w.Conn, err = grpc.NewClient(grpcAddress, grpc.WithContextDialer(w.dial),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		testkit.Must(t, err)
		t.Cleanup(func() { testkit.Must(t, errors.Join(w.Conn.Close(), w.engine.Close())) })
		play(t, w)
	})
}

func (w *World) dial(ctx context.Context, address string) (net.Conn, error) {
	return w.Dial(ctx, "tcp", address)
}

// startEngine serves a new engine by both protocols.
func (w *World) startEngine() {
	var err error
	w.engine, err = server.Open(w.options)
	testkit.Must(w.t, err)
	doors := map[string]func(net.Listener){grpcAddress: w.engine.ServeGRPC, restAddress: w.engine.ServeREST}
	for address, serve := range doors {
		l, err := w.Listen("tcp", address)
		testkit.Must(w.t, err)
		serve(l)
	}
}

// Reach returns how to reach the engine: by REST if rest is set, otherwise by gRPC.
func (w *World) Reach(rest bool) zeebe.Options {
	if rest {
		return zeebe.Options{RESTAddress: "http://" + restAddress, Dialer: w.dial}
	}
	return zeebe.Options{Address: grpcAddress, Plaintext: true, KeepAlive: time.Minute, Dialer: w.dial}
}

// Settle returns when nothing more happens until the clock is moved.
func (w *World) Settle() {
	time.Sleep(moment)
	synctest.Wait()
}

// MoveTo moves the clock to an instant, through everything that is due before.
func (w *World) MoveTo(instant time.Time) {
	for w.Now().Before(instant) {
		w.Settle()
		next := w.next(instant)
		if due, ok := w.engine.NextDue(); ok && due.Before(next) {
			next = due
		}
		if soonest := w.Now().Add(shortest); next.Before(soonest) {
			next = soonest
		}
		w.set(next)
		w.engine.AddTime(0) // it does what is due now
	}
	w.Settle()
}

// Service is one life of the service.
type Service struct {
	*app.App
	Log        *harness.Log
	stop, kill context.CancelFunc
	ended      chan error
}

// Settings returns the default settings, for a service with its journal in that folder.
func (w *World) Settings(folder string, rest bool) config.Settings {
	s, err := config.Load()
	testkit.Must(w.t, err)
	s.HTTPAddr, s.OpsAddr, s.Engine = "127.0.0.1:0", "127.0.0.1:0", w.Reach(rest)
	s.DatabaseURL = harness.Database(folder)
	return s
}

// Serve starts the service, and stops it when the bubble ends.
func (w *World) Serve(s config.Settings) *Service {
	w.t.Helper()
	v := &Service{Log: &harness.Log{}, ended: make(chan error, 1)}
	log := app.NewLogger(v.Log, s.LogLevel, s.LogFormat).WithOptions(zap.WithClock(w.Clock))
	var err error
	v.App, err = app.New(app.Options{Settings: s, Clock: w.Clock, Log: log, Listen: w.Listen, Dial: w.Dial})
	testkit.Must(w.t, err)
	var stop, kill context.Context
	stop, v.stop = context.WithCancel(context.Background())
	kill, v.kill = context.WithCancel(context.Background())
	go func() {
		v.ended <- v.Run(stop, kill)
		close(v.ended)
	}()
	w.t.Cleanup(func() { testkit.Must(w.t, v.Stop()) })
	return v
}

// Stop stops the service in order. Calling it again does nothing.
func (v *Service) Stop() error {
	v.stop()
	return <-v.ended
}

// Kill ends the service at once, whatever it has begun.
func (v *Service) Kill() {
	v.kill()
	v.stop()
	<-v.ended // the error, of a hard stop, is expected
}
