package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"
	"time"

	machine "retry-worker/internal/clock"
	"retry-worker/internal/engine/server"
)

// runEngine runs the engine alone until ctx ends.
func (o *options) runEngine(ctx context.Context, out io.Writer) (err error) {
	engine, err := server.Open(o.engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if err := o.doors.open(engine, 1); err != nil {
		return err
	}
	fmt.Fprint(out, box, "engine ready")
	for _, d := range o.doors.all(engine) {
		if *d.address != "" {
			fmt.Fprint(out, " ", d.name, "=", *d.address)
		}
	}
	fmt.Fprintln(out)
	<-ctx.Done()
	return nil
}

// doors are the engine's addresses; one that is empty is not opened.
type doors struct{ grpc, rest, control string }

type door struct {
	name    string
	address *string
	serve   func(net.Listener)
}

func (d *doors) all(e *server.Server) []door {
	return []door{{"grpc", &d.grpc, e.ServeGRPC}, {"rest", &d.rest, e.ServeREST}, {"control", &d.control, e.ServeControl}}
}

// open serves the engine at its addresses, which become what was opened. Where a port is taken, so many are tried from it on.
func (d *doors) open(e *server.Server, tries int) error {
	for _, d := range d.all(e) {
		if *d.address == "" {
			continue
		}
		host, text, err := net.SplitHostPort(*d.address)
		port, e := strconv.ParseUint(text, 10, 16)
		if err != nil || e != nil {
			return usageError(fmt.Sprintf("--%s is %q, expected host:port, such as 127.0.0.1:26500", d.name, *d.address))
		}
		err = nextFree(int(port), tries, func(port int) error {
			l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
			if err == nil {
				*d.address = l.Addr().String()
				d.serve(l)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("open --%s: %w; port 0 takes a free one", d.name, err)
		}
	}
	return nil
}

// nextFree has open try so many ports from first on, until one is not taken.
func nextFree(first, tries int, open func(port int) error) (err error) {
	for port := first; port < first+tries; port++ {
		if err = open(port); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return err
}

// clock is the engine's, for the worker and its log to go by, and for the samples to move.
type clock struct {
	*server.Server
	save func(ahead time.Duration) error // called before it is moved
}

// Rest implements the worker's clock. It looks now and then whether the clock was moved.
func (c clock) Rest(ctx context.Context, d time.Duration) {
	const lookEvery = 200 * time.Millisecond
	for end := c.Now().Add(d); ctx.Err() == nil; {
		left := end.Sub(c.Now())
		if left <= 0 {
			return
		}
		machine.Machine{}.Rest(ctx, min(left, lookEvery))
	}
}

// NewTicker implements zapcore.Clock.
func (c clock) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }

// Next implements demo.Clock: the way to the next timer of a process, and a quarter of it for those that come close behind.
func (c clock) Next() (time.Duration, bool) {
	at, ok := c.NextTimer()
	way := at.Sub(c.Now())
	return max(time.Second, (way + way/4).Round(time.Second)), ok
}

// Add implements demo.Clock.
func (c clock) Add(_ context.Context, d time.Duration) error {
	if err := c.save(time.Until(c.Now()) + d); err != nil {
		return err
	}
	c.AddTime(d)
	return nil
}
