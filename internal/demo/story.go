package demo

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"retry-worker/internal/api"
	"retry-worker/internal/clock"
)

// story tells what happens, sample by sample, and knows when every sample has ended. Safe for concurrent use.
type story struct {
	out       io.Writer
	processes []*Process
	told      clock.Signal  // sent for each thing told: the demo waits while things happen
	all       chan struct{} // closed when nothing is open

	mu    sync.Mutex
	page  map[*Sample][]string // told and not yet printed
	open  map[*Sample]bool     // have not ended
	ended map[*Sample]string   // how
}

func newStory(out io.Writer, processes []*Process) *story {
	s := &story{out: out, processes: processes, told: clock.NewSignal(), all: make(chan struct{}),
		page: make(map[*Sample][]string), open: make(map[*Sample]bool), ended: make(map[*Sample]string)}
	for _, p := range processes {
		for _, x := range p.Samples {
			s.open[x] = true
		}
	}
	return s
}

// say tells something of a sample. It is printed with the page.
func (s *story) say(x *Sample, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page[x] = append(s.page[x], fmt.Sprintf(format, args...))
	s.told.Send()
}

// note tells something that is of no sample, behind all that was told before.
func (s *story) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn()
	fmt.Fprintf(s.out, "\n"+format+"\n", args...)
}

// turn prints the page, ordered by process and sample: what belongs together stands together. The lock is held.
func (s *story) turn() {
	for _, p := range s.processes {
		first := true
		for _, x := range p.Samples {
			for n, text := range s.page[x] {
				if first {
					first = false
					fmt.Fprintf(s.out, "\n%s: %s\n", p.ID, p.Subjects)
				}
				id := ""
				if n == 0 {
					id = x.ID
				}
				fmt.Fprintf(s.out, "  %-19s %s\n", id, text)
			}
		}
	}
	clear(s.page)
}

func (s *story) failed(g *progress, f Failure) {
	status := ""
	if n, given := f.Variables["httpStatus"]; given {
		status = fmt.Sprintf(" (HTTP status %v)", n)
	}
	if f.Variables["nonRetryable"] == true {
		status = " (not retryable)"
	}
	s.say(g.Sample, "%s %d fails: %q%s", g.process.Work.Try, g.tries, f.Text, status)
}

func (s *story) succeeded(g *progress) {
	work := &g.process.Work
	after := ""
	if g.letter != "" {
		after = " after your review"
	}
	s.say(g.Sample, "%s %d: %s%s", work.Try, g.tries, work.Done, after)
	s.end(g.Sample, fmt.Sprintf("%s at %s %d", work.Done, work.Try, g.tries))
}

func (s *story) reviewed(g *progress, l *api.DeadLetter) {
	what, end := "corrected, to be tried again", ""
	switch {
	case g.Discard:
		what, end = "discarded", "discarded by a person"
	case g.Protocol != "":
		what, end = "the portal has it already, as "+g.Protocol, "closed by a person: the portal had it"
	}
	s.say(g.Sample, "review by %s (dead letter %.8s): %s", l.ResponsibleTeam, l.ID, what)
	if end != "" {
		s.end(g.Sample, end)
	}
}

// left is told of a dead letter that is for the person who looks at the screen.
func (s *story) left(g *progress, l *api.DeadLetter) {
	s.say(g.Sample, "review by %s (dead letter %.8s): left for you", l.ResponsibleTeam, l.ID)
	s.end(g.Sample, waitsForYou)
}

// judged is told of what that person has decided.
func (s *story) judged(g *progress, waits time.Duration) {
	v := g.verdict
	switch {
	case v.Decision == "discard":
		s.say(g.Sample, "reviewed by %s: %q; let go, and the process ends", v.By, v.Reason)
	case v.Decision == "accepted":
		s.say(g.Sample, "reviewed by %s: %q; accepted already, and the process ends", v.By, v.Reason)
	case waits < time.Second:
		s.say(g.Sample, "reviewed by %s: %q; the process goes on at once", v.By, v.Reason)
	default:
		s.say(g.Sample, "reviewed by %s: %q; the process goes on at %s", v.By, v.Reason,
			nextRetry(v).UTC().Format(time.RFC3339))
	}
}

// decided is told by the worker's own log.
func (s *story) decided(x *Sample, d logLine) {
	switch d.Event {
	case "retry_scheduled", "submission_retry_scheduled":
		s.say(x, "  decided: %s, in %s, at %s (%s)", d.Message, d.wait(), d.NextRetryTime,
			cmp.Or(d.MatchedRule, "no rule matched"))
	case "max_retries_exceeded", "permanent_error_detected":
		s.say(x, "  decided: %s; goes to %s", d.Message, d.ResponsibleTeam)
	}
}

// rejected is told by the worker's own log.
func (s *story) rejected(x *Sample, message string) {
	s.say(x, "  rejected: %s", message)
	s.end(x, "an incident, waiting for a correction")
}

func (s *story) end(x *Sample, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open[x] {
		return
	}
	delete(s.open, x)
	s.ended[x] = how
	if len(s.open) == 0 {
		close(s.all)
	}
}

// pageTime is how long what happens waits at most to be printed while more happens.
const pageTime = 2 * time.Second

// quiet prints what is told until nothing has been told for a while, and tells whether samples are still open.
func (s *story) quiet(stop <-chan struct{}, pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	page := time.NewTicker(pageTime)
	defer page.Stop()
	defer s.print()
	for {
		select {
		case <-s.told:
			t.Reset(pause)
		case <-page.C:
			s.print()
		case <-t.C:
			return true
		case <-s.all:
			return false
		case <-stop:
			return false
		}
	}
}

// follow prints what is told until stop is closed; what comes within a moment comes together.
func (s *story) follow(stop <-chan struct{}) {
	for page := time.NewTicker(calm); ; s.print() {
		select {
		case <-page.C:
		case <-stop:
			return
		}
	}
}

func (s *story) print() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn()
}

// waiting counts the samples that have not ended, but for those that end as incidents.
func (s *story) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for x := range s.open {
		if !x.Incident {
			n++
		}
	}
	return n
}

// group is the samples of a process that show the same.
type group []*Sample

// groups returns those of a process, in its order: samples that show the same stand side by side.
func (p *Process) groups() []group {
	var all []group
	for i, x := range p.Samples {
		if i == 0 || x.Shows != p.Samples[i-1].Shows {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], x)
	}
	return all
}

// ids names the first of a group and, where there are more, the last.
func (g group) ids() string {
	if len(g) == 1 {
		return g[0].ID
	}
	return g[0].ID + " … " + g[len(g)-1].ID
}

// width of the longest that a process's samples show, in characters.
func (p *Process) width() int {
	most := 0
	for _, x := range p.Samples {
		most = max(most, utf8.RuneCountInString(x.Shows))
	}
	return most
}

// announce tells what is started, and what each sample is there to show.
func (s *story) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.out, "\nThe demo starts samples of every bundled process, and plays everybody around the worker:\n")
	for _, p := range s.processes {
		fmt.Fprintf(s.out, "\n%s: %d %s; the demo plays %s\n", p.ID, len(p.Samples), p.Subjects, p.System)
		for _, g := range p.groups() {
			fmt.Fprintf(s.out, "  %2d  %-*s  %s\n", len(g), p.width(), g[0].Shows, g.ids())
		}
	}
}

// result is how so many samples that show the same have ended.
type result struct {
	Shows, How string
	Samples    int
}

// results of a process, in its order.
func (s *story) results(p *Process) []result {
	var all []result
	for _, x := range p.Samples {
		how := cmp.Or(s.ended[x], x.ID+" has not ended")
		at := slices.IndexFunc(all, func(r result) bool { return r.Shows == x.Shows && r.How == how })
		if at < 0 {
			at = len(all)
			all = append(all, result{Shows: x.Shows, How: how})
		}
		all[at].Samples++
	}
	return all
}

// waitsForYou is how a sample has ended that is left for the person who looks at the screen.
const waitsForYou = "waits for your review"

// leftOver counts what is left for that person, process by process; empty where nothing is.
func (s *story) leftOver() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, p := range s.processes {
		n := 0
		for _, x := range p.Samples {
			if s.ended[x] == waitsForYou {
				n++
			}
		}
		if n > 0 {
			all = append(all, fmt.Sprintf("%d of %s", n, p.ID))
		}
	}
	return strings.Join(all, ", ")
}

// summarize tells what became of each process's samples.
func (s *story) summarize() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn()
	fmt.Fprint(s.out, "\nWhat became of them:\n")
	for _, p := range s.processes {
		fmt.Fprintf(s.out, "\n%s: %d %s\n", p.ID, len(p.Samples), p.Subjects)
		for _, r := range s.results(p) {
			fmt.Fprintf(s.out, "  %2d  %-*s  %s\n", r.Samples, p.width(), r.Shows, r.How)
		}
	}
}
