package console

import (
	"cmp"
	"slices"
	"time"

	"retry-worker/internal/journal"
)

// The shapes of a story's picture. The set is closed.
const (
	markRetry     = "retry"     // a failure after which a retry was scheduled
	markFinal     = "final"     // a failure that is given up
	markRecovered = "recovered" // it went through
	markReview    = "review"    // a person sent it again
	markDiscard   = "discard"   // a person let it go
	markNext      = "next"      // the retry that lies ahead
	markHeld      = "held"      // it waits at a gate
	markReleased  = "released"  // it waits there no more
	markDeadline  = "deadline"  // by when it must have been sent
	markNote      = "note"      // anything else
)

// marks in the order of the legend.
var marks = []string{markHeld, markReleased, markRetry, markFinal, markReview, markDiscard, markRecovered, markNext,
	markDeadline, markNote}

// The picture's measures in pixels.
const (
	wideWidth   = 960
	narrowWidth = 328
	edge        = 18 // left and right of the axis
	breakWidth  = 34 // that a wait which is not drawn to scale takes
	waitName    = 46 // least width of a bar that is named
	markGap     = 13 // least distance of a shape to what follows, so that none hides another
	tickGap     = 92
)

// timeline is a story to scale.
type timeline struct {
	ID    string
	Width int
	// EdgeX is the right end of the axis.
	EdgeX float64
	Waits []waitBar
	// Waited and Held tell which kinds there are.
	Waited, Held bool
	Breaks       []breakMark
	Points       []point
	Ticks        []tick
	Now          float64
	HasNow       bool
	NowAnchor    string
	Title, Words string
}

// waitBar is a backoff from the decision to the retry.
type waitBar struct {
	X, Width float64
	Name     string
	NameX    float64
	// Ahead tells that it is not over, Held that it is a gate's.
	Ahead, Held bool
}

// breakMark is a wait that is not drawn to scale.
type breakMark struct {
	X    float64
	Name string
}

type point struct {
	X    float64
	Mark string
	// Label is the attempt's number; empty where there is no room for it.
	Label string
}

type tick struct {
	X      float64
	Name   string
	Anchor string
}

// moment of a story, before it has a place.
type happened struct {
	at   time.Time
	mark string
	// number of the attempt, 0 for anything else.
	number int64
	// until the wait that begins there ends; the zero time for none.
	until time.Time
}

// deadline of a claim that is still to be sent; the zero time for none.
func deadline(story *journal.Story) time.Time {
	if len(story.Held) > 0 {
		return story.Held[0].Deadline
	}
	if n := len(story.DeadLetters); n > 0 && story.DeadLetters[n-1].State == journal.DeadLetterOpen {
		return story.DeadLetters[n-1].Deadline
	}
	return time.Time{}
}

// happenings of a story in order, with the retry that lies ahead and the deadline.
func (v *visit) happenings(story *journal.Story) []happened {
	var all []happened
	for i := range story.Attempts {
		a := &story.Attempts[i]
		h := happened{a.Decision.AnalysedAt, markFinal, a.Number, time.Time{}}
		if a.Decision.ShouldRetry() {
			h.mark, h.until = markRetry, a.Decision.NextRetryTime
		}
		all = append(all, h)
	}
	for i := range story.Entries {
		if e := &story.Entries[i]; e.Kind != journal.DeliveryEntry { // seconds after what was decided
			all = append(all, v.happenedBy(story, e))
		}
	}
	slices.SortStableFunc(all, func(a, b happened) int { return a.at.Compare(b.at) })
	// A wait ends early where the next attempt came earlier: the engine was asked again.
	for i := range all {
		if i+1 < len(all) && all[i+1].number > 0 && all[i].until.After(all[i+1].at) {
			all[i].until = all[i+1].at
		}
	}
	if n := len(story.Episodes); n > 0 {
		e := &story.Episodes[n-1]
		if state := e.StateAt(v.now); (state == journal.Scheduled || state == journal.Reprocessing) &&
			e.NextRetryTime.After(v.now) {
			all = append(all, happened{at: e.NextRetryTime, mark: markNext})
		}
	}
	if at := deadline(story); !at.IsZero() && len(all) > 0 {
		all = append(all, happened{at: at, mark: markDeadline})
		slices.SortStableFunc(all, func(a, b happened) int { return a.at.Compare(b.at) })
	}
	return all
}

func (v *visit) happenedBy(story *journal.Story, e *journal.Entry) happened {
	h := happened{at: e.At, mark: v.entry(e, bodyOf(e)).Mark}
	if h.mark == markHeld {
		h.until = v.heldUntil(story, e)
	}
	if h.mark != markReview {
		return h
	}
	for i := range story.DeadLetters {
		if n := &story.DeadLetters[i].Review; n.At.Equal(e.At) && n.NextRetryTime.After(e.At) {
			h.until = n.NextRetryTime
		}
	}
	return h
}

// heldUntil returns when the process of a gate's record waited no more; now where it does yet.
func (v *visit) heldUntil(story *journal.Story, held *journal.Entry) time.Time {
	b, _ := journal.BodyOf[journal.GateBody](held)
	for i := range story.Entries {
		e := &story.Entries[i]
		if e.Kind != journal.GateEntry || e.Record <= held.Record {
			continue
		}
		if later, _ := journal.BodyOf[journal.GateBody](e); later.JobKey == b.JobKey {
			return e.At
		}
	}
	return v.now
}

// timelines are the picture for wide and for narrow screens; nil where nothing has a place.
func (v *visit) timelines(story *journal.Story) (wide, narrow *timeline) {
	all := v.happenings(story)
	if len(all) == 0 {
		return nil, nil
	}
	return v.timeline(story, all, wideWidth, "wide"), v.timeline(story, all, narrowWidth, "narrow")
}

func (v *visit) timeline(story *journal.Story, all []happened, width int, id string) *timeline {
	running := len(story.Held) > 0 || len(story.Episodes) > 0 && story.Episodes[len(story.Episodes)-1].State.Open()
	s := scaleOf(all, v.now, running, float64(width))
	t := &timeline{ID: "story-" + id, Width: width, EdgeX: float64(width) - edge, HasNow: running, Now: s.place(v.now)}
	t.NowAnchor = "middle"
	if t.Now > t.EdgeX-edge {
		t.NowAnchor = "end"
	}
	last := -100.0
	for _, h := range all {
		x := s.place(h.at)
		p := point{X: x, Mark: h.mark}
		if h.number > 0 && x-last >= 14 {
			p.Label, last = v.Number(h.number), x
		}
		t.Points = append(t.Points, p)
		if h.until.After(h.at) {
			t.Waits = append(t.Waits, v.waitBar(&s, h))
			t.Held, t.Waited = t.Held || h.mark == markHeld, t.Waited || h.mark != markHeld
		}
	}
	for _, g := range s.gaps {
		if g.broken {
			t.Breaks = append(t.Breaks, breakMark{g.x + g.width/2, v.span(g.long())})
		}
	}
	t.Ticks = v.ticks(&s)
	t.Title = v.T("story.picture", story.Subject.ID)
	end := all[len(all)-1]
	if end.mark == markDeadline && len(all) > 1 {
		end = all[len(all)-2]
	}
	t.Words = v.T("story.picture.words", v.Count("story.attempts", int64(len(story.Attempts))),
		v.span(end.at.Sub(all[0].at)))
	return t
}

func (v *visit) waitBar(s *scale, h happened) waitBar {
	from, to := s.place(h.at), s.place(h.until)
	b := waitBar{X: from, Width: max(to-from, 1), NameX: (from + to) / 2, Ahead: h.until.After(v.now),
		Held: h.mark == markHeld}
	if b.Width >= waitName {
		b.Name = v.span(h.until.Sub(h.at))
	}
	return b
}

// Marks are the shapes that are in the picture, for its legend.
func (t *timeline) Marks() []string {
	return slices.DeleteFunc(slices.Clone(marks), func(mark string) bool {
		return !slices.ContainsFunc(t.Points, func(p point) bool { return p.Mark == mark })
	})
}

// scale maps instants to places. Backoffs and runs are to scale with one another; a long time in which nothing was
// scheduled is broken, and says how long it was.
type scale struct {
	instants []time.Time // at least one, in order
	gaps     []gap       // between them
}

// gap between two neighbouring instants, with its place in the picture.
type gap struct {
	from, to time.Time
	// idle tells that no retry was scheduled then: it waited for people, or was over.
	idle, broken bool
	// marked tells that a shape stands at its begin.
	marked   bool
	x, width float64
}

func scaleOf(all []happened, now time.Time, running bool, width float64) scale {
	instants := make([]time.Time, 0, 2*len(all)+1)
	for _, h := range all {
		instants = append(instants, h.at)
		if !h.until.IsZero() {
			instants = append(instants, h.until)
		}
	}
	if running {
		instants = append(instants, now)
	}
	slices.SortFunc(instants, time.Time.Compare)
	instants = slices.CompactFunc(instants, time.Time.Equal)
	s := scale{instants: instants}
	for i := 1; i < len(instants); i++ {
		g := gap{from: instants[i-1], to: instants[i], idle: true}
		for _, h := range all {
			if !h.at.After(g.from) && !h.until.Before(g.to) {
				g.idle = false
			}
			g.marked = g.marked || h.at.Equal(g.from)
		}
		s.gaps = append(s.gaps, g)
	}
	s.breakUp()
	s.lay(width)
	return s
}

// breakUp chooses the idle gaps that would squash the rest: longer than half of all waits together, or, where there are
// no waits, than four times the shorter gaps together.
func (s *scale) breakUp() {
	if len(s.gaps) < 2 {
		return
	}
	busy := time.Duration(0)
	var idle []*gap
	for i := range s.gaps {
		if g := &s.gaps[i]; g.idle {
			idle = append(idle, g)
		} else {
			busy += g.long()
		}
	}
	slices.SortFunc(idle, func(a, b *gap) int { return cmp.Compare(a.long(), b.long()) })
	rest := time.Duration(0)
	for _, g := range idle {
		g.broken = busy > 0 && g.long() > busy/2 || busy == 0 && rest > 0 && g.long() > 4*rest
		rest += g.long()
	}
}

// lay gives each gap its place: to scale, but for those that are broken or would let one shape hide another.
func (s *scale) lay(width float64) {
	room, total := width-2*edge, 0.0
	var scaled []*gap
	for i := range s.gaps {
		if g := &s.gaps[i]; g.broken {
			g.width = breakWidth
			room -= breakWidth
		} else {
			scaled = append(scaled, g)
			total += g.long().Seconds()
		}
	}
	slices.SortFunc(scaled, func(a, b *gap) int { return cmp.Compare(a.long(), b.long()) })
	for i, g := range scaled { // the shortest first: what they take more, the others have less
		g.width = max(room, 0) * g.long().Seconds() / total
		if least := min(markGap, room/float64(len(scaled)-i)); g.marked && g.width < least {
			g.width = max(least, 0)
		}
		room, total = room-g.width, total-g.long().Seconds()
	}
	x := float64(edge)
	for i := range s.gaps {
		s.gaps[i].x = x
		x += s.gaps[i].width
	}
}

// long is how long the gap is, more than 0.
func (g *gap) long() time.Duration { return g.to.Sub(g.from) }

// place of an instant; those outside stand at the ends.
func (s *scale) place(t time.Time) float64 {
	if len(s.gaps) == 0 || !t.After(s.instants[0]) {
		return edge
	}
	for i := range s.gaps {
		if g := &s.gaps[i]; !t.After(g.to) {
			return g.x + g.width*t.Sub(g.from).Seconds()/g.long().Seconds()
		}
	}
	last := &s.gaps[len(s.gaps)-1]
	return last.x + last.width
}

// ticks name instants of the story itself, as many as there is room for.
func (v *visit) ticks(s *scale) []tick {
	var all []tick
	var day string
	place := func(t time.Time, anchor string) {
		name := t.In(v.zone).Format("15:04")
		if s.short() {
			name = t.In(v.zone).Format("15:04:05")
		}
		if d := v.shortDay(t); d != day {
			name, day = d+" "+name, d
		}
		all = append(all, tick{s.place(t), name, anchor})
	}
	place(s.instants[0], "start")
	last := s.instants[len(s.instants)-1]
	end := s.place(last)
	for _, t := range s.instants[1:] {
		switch x := s.place(t); {
		case t.Equal(last):
			if x-all[len(all)-1].X >= tickGap {
				place(t, "end")
			}
		case x-all[len(all)-1].X >= tickGap && end-x >= tickGap:
			place(t, "middle")
		}
	}
	return all
}

// short reports whether seconds matter.
func (s *scale) short() bool {
	total := time.Duration(0)
	for i := range s.gaps {
		if !s.gaps[i].broken {
			total += s.gaps[i].long()
		}
	}
	return total < 10*time.Minute
}
