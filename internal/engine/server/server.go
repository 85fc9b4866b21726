// Package server serves the development engine: Zeebe's gRPC protocol, its REST API, and a port to control the engine.
// It keeps the events in a file and lets time pass.
package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/engine"
)

// Options of a server. The zero value keeps everything in memory and speaks as Zeebe 8.8 does.
type Options struct {
	// Data is the folder of the log; if empty, all is in memory. Acknowledged events survive the process.
	Data string
	// Fsync makes them survive a crash of the machine too.
	Fsync bool
	// Shape is the version whose REST answers are given: "8.6", or "8.8" if empty.
	Shape string
	// Version is the topology's; if empty, the first of the shape.
	Version string
	// Tenants turns multi-tenancy on, with these tenants and the default one.
	Tenants []string
	// MaxInFlight bounds the running commands; more are refused. 0 means no bound. Completions and failures have twice
	// the bound.
	MaxInFlight int
	// Now is the clock on which the engine's is based; nil means time.Now.
	Now func() time.Time
	// Happened is called with events before anybody else sees them; nil means not. It must call nothing of the server
	// but Now.
	Happened func([]engine.Event)
	// Around is called with each request of either protocol (an [engine.Command], a poll's *pb.ActivateJobsRequest, or
	// nil for the topology) and its effect, which it may skip. The caller gets its error, a gRPC status. Tests use it
	// to cause faults; nil calls the effect.
	Around func(ctx context.Context, asked any, effect func() error) error
}

// The shapes of REST.
const (
	Shape86 = "8.6"
	Shape88 = "8.8"
)

// Server is a running engine. Its methods are safe for concurrent use.
type Server struct {
	options  Options
	core     *engine.Core     // for the loop only
	log      *logFile         // for the loop only; nil: all is in memory
	unsaid   [][]engine.Event // events not written yet; for the loop only
	requests chan *request
	stop     chan struct{}
	stopped  chan struct{}
	ending   sync.Once
	recent   *recent
	inFlight atomic.Int64

	mu      sync.Mutex
	offset  time.Duration // of the clock
	pinned  time.Time     // where the clock stands; zero: it runs
	waiting map[[2]string][]*poll
	closers []func()
}

// request is a task for the loop.
type request struct {
	commands []engine.Command
	look     func(*engine.Core, []engine.Event) // called with the resulting events; may be nil
	poll     *poll                              // waits if it got no jobs
	waits    bool                               // set if poll waits
	done     chan error
	err      error
}

// Open starts an engine. The caller closes it.
func Open(o Options) (*Server, error) {
	if o.Shape == "" {
		o.Shape = Shape88
	}
	if o.Shape != Shape86 && o.Shape != Shape88 {
		return nil, fmt.Errorf("the shape is %q, expected %s or %s", o.Shape, Shape86, Shape88)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Around == nil {
		o.Around = func(_ context.Context, _ any, effect func() error) error { return effect() }
	}
	s := &Server{
		options: o, core: engine.New(), requests: make(chan *request), stop: make(chan struct{}), stopped: make(chan struct{}),
		recent: newRecent(), waiting: map[[2]string][]*poll{},
	}
	if o.Data != "" {
		var err error
		if s.log, err = openLog(o.Data, o.Fsync, s.replay); err != nil {
			return nil, err
		}
		s.core.ResetCounts()
	}
	go s.run()
	return s, nil
}

func (s *Server) replay(events []engine.Event) error {
	for i := range events {
		if err := s.core.Fold(&events[i]); err != nil {
			return err
		}
	}
	s.recent.add(events)
	return nil
}

// Close stops the engine and its servers, and waits for them. Further calls do nothing.
func (s *Server) Close() (err error) {
	s.ending.Do(func() {
		s.mu.Lock()
		closers := s.closers
		s.closers = nil
		s.mu.Unlock()
		close(s.stop)
		<-s.stopped
		s.recent.close()
		for _, end := range slices.Backward(closers) {
			end()
		}
		if s.log != nil {
			err = s.log.close()
		}
	})
	return err
}

// atClose makes Close call end.
func (s *Server) atClose(end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, end)
}

// Now returns the time by the engine's clock.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pinned.IsZero() {
		return s.pinned
	}
	return s.options.Now().Add(s.offset)
}

// AddTime moves the clock forward, and returns when all that is then due has happened.
func (s *Server) AddTime(d time.Duration) {
	s.moveClock(func() {
		if !s.pinned.IsZero() {
			s.pinned = s.pinned.Add(d)
		}
		s.offset += d
	})
}

// PinTime stops the clock at an instant, and returns when all that is then due has happened.
func (s *Server) PinTime(t time.Time) { s.moveClock(func() { s.pinned = t }) }

// ResetTime returns to the underlying clock.
func (s *Server) ResetTime() { s.moveClock(func() { s.pinned, s.offset = time.Time{}, 0 }) }

func (s *Server) moveClock(move func()) {
	s.mu.Lock()
	move()
	s.mu.Unlock()
	const most = 10_000 // rounds, since some timers may be due at once for ever
	for more, n := true, 0; more && n < most; n++ {
		err := s.inLoop(context.Background(), &request{look: func(c *engine.Core, _ []engine.Event) { more = s.isDue(c) }})
		if err != nil {
			return
		}
	}
}

// NextTimer returns when the next timer of a process fires, by the engine's clock; ok is false if there is none.
func (s *Server) NextTimer() (next time.Time, ok bool) {
	_ = s.inLoop(context.Background(), &request{look: func(c *engine.Core, _ []engine.Event) { next, ok = c.NextTimer() }})
	return next, ok
}

// NextDue returns when something happens next by itself, by the engine's clock; ok is false if nothing will.
func (s *Server) NextDue() (next time.Time, ok bool) {
	_ = s.inLoop(context.Background(), &request{look: func(c *engine.Core, _ []engine.Event) { next, ok = c.NextDue() }})
	return next, ok
}

func (s *Server) isDue(c *engine.Core) bool {
	next, ok := c.NextDue()
	return ok && !next.After(s.Now())
}

var (
	errStopping = status.Error(codes.Unavailable, "the development engine is stopping")
	errBusy     = status.Error(codes.ResourceExhausted, "Expected to handle the request, but too many are in flight already (--max-in-flight)")
)

// inLoop makes the loop carry out a request, and returns its error.
func (s *Server) inLoop(ctx context.Context, r *request) error {
	r.done = make(chan error, 1)
	select {
	case s.requests <- r:
	case <-s.stop:
		return errStopping
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
	select {
	case err := <-r.done:
		return err
	case <-s.stopped:
		return errStopping
	}
}

// do carries out a command; name is Zeebe's. The error is a gRPC status.
func (s *Server) do(ctx context.Context, name string, command engine.Command, look func(*engine.Core, []engine.Event)) error {
	return s.options.Around(ctx, command, func() error {
		if s.busy(command) {
			return errBusy
		}
		defer s.inFlight.Add(-1)
		ctx := context.WithoutCancel(ctx) // a received command takes effect even if its caller leaves
		return rejected(name, s.inLoop(ctx, &request{commands: []engine.Command{command}, look: look}))
	})
}

// Do carries out commands at one instant, up to the first that fails. It returns their events if none fails. No job is
// activated between them.
func (s *Server) Do(ctx context.Context, commands ...engine.Command) (all []engine.Event, err error) {
	err = s.inLoop(ctx, &request{commands: commands, look: func(_ *engine.Core, events []engine.Event) { all = events }})
	return all, err
}

// busy counts a command as running, or reports true if it must be refused.
func (s *Server) busy(command engine.Command) bool {
	n, limit := s.inFlight.Add(1), int64(s.options.MaxInFlight)
	switch command.(type) {
	case engine.Complete, engine.Fail:
		limit *= 2
	}
	if limit > 0 && n > limit {
		s.inFlight.Add(-1)
		return true
	}
	return false
}

// reasons maps rejections to gRPC's codes.
var reasons = map[engine.Reason]codes.Code{
	engine.NotFound: codes.NotFound, engine.InvalidArgument: codes.InvalidArgument, engine.InvalidState: codes.FailedPrecondition,
	engine.AlreadyExists: codes.AlreadyExists,
}

func rejected(name string, err error) error {
	if r, is := errors.AsType[*engine.Rejection](err); is {
		return status.Errorf(reasons[r.Reason], "Command '%s' rejected with code '%s': %s", name, r.Reason, r.Message)
	}
	return err
}

// mostAtOnce bounds the requests whose events are written together.
const mostAtOnce = 256

// run carries out requests and whatever is due, until the server stops.
func (s *Server) run() {
	defer close(s.stopped)
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		var batch []*request
		select {
		case r := <-s.requests:
			batch = append(batch, r)
		case <-due.C:
		case <-s.stop:
			return
		}
		for more := true; more && len(batch) < mostAtOnce; {
			select {
			case r := <-s.requests:
				batch = append(batch, r)
			default:
				more = false
			}
		}
		s.round(batch)
		due.Reset(s.untilDue())
	}
}

// untilDue returns how long nothing will happen by itself.
func (s *Server) untilDue() time.Duration {
	const longest, again = time.Hour, time.Second
	if s.log.behind() {
		return again
	}
	next, ok := s.core.NextDue()
	s.mu.Lock()
	stands := !s.pinned.IsZero()
	s.mu.Unlock()
	if !ok || stands && next.After(s.Now()) {
		return longest
	}
	return min(longest, max(0, next.Sub(s.Now())))
}

// round carries out what is due and a batch of requests, writes the events, and then answers. While writing fails,
// requests are refused and nothing else happens.
func (s *Server) round(batch []*request) {
	if err := s.log.write(nil); err != nil {
		s.answer(batch, nil, err)
		return
	}
	happened := s.unsaid
	written := len(happened) // by write(nil) above
	s.unsaid = nil
	const mostTicks = 50 // then requests get a turn
	for n := 0; n < mostTicks && s.isDue(s.core); n++ {
		happened = append(happened, s.core.Tick(s.Now()))
	}
	apply := func(command engine.Command) ([]engine.Event, error) {
		events, err := s.core.Apply(command, s.Now())
		if len(events) > 0 {
			happened = append(happened, events)
		}
		return events, err
	}
	var served []*poll
	for _, r := range batch {
		var events []engine.Event
		for i := 0; i < len(r.commands) && r.err == nil; i++ {
			var more []engine.Event
			more, r.err = apply(r.commands[i])
			events = append(events, more...)
		}
		if r.err == nil && r.look != nil {
			r.look(s.core, events)
		}
		if r.err == nil && r.poll != nil && !r.poll.take(s.core, events) {
			r.waits = true
			s.enqueue(r.poll)
		}
	}
	for _, of := range s.core.Woken() {
		served = append(served, s.serve(of, apply)...)
	}
	err := s.log.write(happened[written:])
	if err != nil {
		s.unsaid = happened
	} else {
		for _, events := range happened {
			s.recent.add(events)
			if s.options.Happened != nil {
				s.options.Happened(events)
			}
		}
	}
	s.answer(batch, served, err)
}

// answer sends their results to requests and waiting polls.
func (s *Server) answer(batch []*request, served []*poll, err error) {
	for _, p := range served {
		p.err = err
		close(p.served)
	}
	for _, r := range batch {
		if err != nil {
			r.err = err
		}
		r.done <- r.err
	}
}

// poll waits for jobs of a type.
type poll struct {
	engine.Activate
	variables []string // to fetch
	jobs      []engine.Job
	err       error
	served    chan struct{} // closed when jobs and err are set
}

// take takes the jobs that events activated, and reports whether there were any.
func (p *poll) take(c *engine.Core, events []engine.Event) bool {
	p.jobs = c.Jobs(events, p.variables)
	return len(p.jobs) > 0
}

func (s *Server) enqueue(p *poll) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tenant := range p.Tenants {
		of := [2]string{tenant, p.Type}
		s.waiting[of] = append(s.waiting[of], p)
	}
}

// dequeue removes a waiting poll, and reports whether it waited.
func (s *Server) dequeue(p *poll) (waited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tenant := range p.Tenants {
		of := [2]string{tenant, p.Type}
		if at := slices.Index(s.waiting[of], p); at >= 0 {
			waited = true
			if s.waiting[of] = slices.Delete(s.waiting[of], at, at+1); len(s.waiting[of]) == 0 {
				delete(s.waiting, of)
			}
		}
	}
	return waited
}

// serve gives jobs of a type to the polls that wait for them, in order.
func (s *Server) serve(of [2]string, apply func(engine.Command) ([]engine.Event, error)) (served []*poll) {
	for {
		s.mu.Lock()
		var p *poll
		if all := s.waiting[of]; len(all) > 0 {
			p = all[0]
		}
		s.mu.Unlock()
		if p == nil {
			return served
		}
		if !s.dequeue(p) {
			continue
		}
		events, _ := apply(p.Activate)
		if !p.take(s.core, events) {
			s.mu.Lock()
			s.waiting[of] = slices.Insert(s.waiting[of], 0, p)
			s.mu.Unlock()
			return served
		}
		served = append(served, p)
	}
}

// activate activates jobs for a worker. It waits up to wait for the first.
func (s *Server) activate(ctx context.Context, a engine.Activate, variables []string, wait time.Duration) ([]engine.Job, error) {
	if s.busy(a) {
		return nil, errBusy
	}
	p := &poll{Activate: a, variables: variables, served: make(chan struct{})}
	r := &request{commands: []engine.Command{a}}
	if wait > 0 {
		r.poll = p
	} else {
		r.look = func(c *engine.Core, events []engine.Event) { p.take(c, events) }
	}
	err := s.inLoop(ctx, r)
	s.inFlight.Add(-1) // a waiting poll does not count as running
	if !r.waits {
		return p.jobs, rejected("ACTIVATE", err)
	}
	if err != nil {
		s.dequeue(p)
		return nil, err
	}
	limit := time.NewTimer(wait)
	defer limit.Stop()
	select {
	case <-p.served:
	case <-limit.C:
	case <-ctx.Done():
	case <-s.stop:
	}
	if s.dequeue(p) {
		return nil, nil
	}
	select {
	case <-p.served: // its answer is on the way
		return p.jobs, p.err
	case <-s.stopped:
		return nil, errStopping
	}
}

// giveBack hands back jobs that could not be sent to their worker.
func (s *Server) giveBack(jobs []engine.Job) {
	for i := range jobs {
		j := &jobs[i]
		_, _ = s.Do(context.Background(), engine.Fail{Key: j.Key, Retries: j.Retries, Message: "Failed to send activated jobs to client"})
	}
}
