package bpmn_test

import (
	"strings"
	"testing"
	"unicode/utf8"
)

type point struct {
	X float64 `xml:"x,attr"`
	Y float64 `xml:"y,attr"`
}

type box struct {
	point
	W float64 `xml:"width,attr"`
	H float64 `xml:"height,attr"`
}

type shape struct {
	Element string `xml:"bpmnElement,attr"`
	Bounds  box    `xml:"Bounds"`
	Label   box    `xml:"BPMNLabel>Bounds"`
}

type edge struct {
	Element   string  `xml:"bpmnElement,attr"`
	Waypoints []point `xml:"waypoint"`
	Label     box     `xml:"BPMNLabel>Bounds"`
}

// clearance between things that have nothing to do with one another, in the drawing's units.
const clearance = 3

// overlaps says whether b and c come nearer than the clearance.
func (b box) overlaps(c box) bool {
	return b.X < c.X+c.W+clearance && c.X < b.X+b.W+clearance &&
		b.Y < c.Y+c.H+clearance && c.Y < b.Y+b.H+clearance
}

// segments are the edge's straight pieces as boxes without area.
func (e *edge) segments() []box {
	var all []box
	for i := 1; i < len(e.Waypoints); i++ {
		p, q := e.Waypoints[i-1], e.Waypoints[i]
		x, y := min(p.X, q.X), min(p.Y, q.Y)
		all = append(all, box{point{x, y}, max(p.X, q.X) - x, max(p.Y, q.Y) - y})
	}
	return all
}

func (e *edge) touches(b box) bool {
	for _, s := range e.segments() {
		if s.overlaps(b) {
			return true
		}
	}
	return false
}

func TestEdgesRunStraightAndNeverCross(t *testing.T) {
	each(t, func(t *testing.T, d document) {
		for i := range d.Plane.Edges {
			e := &d.Plane.Edges[i]
			for _, s := range e.segments() {
				if s.W > 0 && s.H > 0 {
					t.Errorf("edge %s runs aslant at (%v, %v)", e.Element, s.X, s.Y)
				}
			}
			for j := range i {
				other := &d.Plane.Edges[j]
				for _, s := range other.segments() {
					if e.touches(s) {
						t.Errorf("edges %s and %s meet", other.Element, e.Element)
					}
				}
			}
		}
	})
}

func TestNothingLiesOverAnything(t *testing.T) {
	each(t, func(t *testing.T, d document) {
		ends, host := relations(&d)
		for i, s := range d.Plane.Shapes {
			for _, other := range d.Plane.Shapes[:i] {
				if host[s.Element] != other.Element && host[other.Element] != s.Element && s.Bounds.overlaps(other.Bounds) {
					t.Errorf("%s and %s overlap", s.Element, other.Element)
				}
			}
			for _, e := range d.Plane.Edges {
				if !ends[e.Element+" "+s.Element] && e.touches(s.Bounds) {
					t.Errorf("edge %s runs over %s", e.Element, s.Element)
				}
			}
		}
	})
}

// relations tell which shapes an edge may touch ("edge shape"), and on which shape a boundary event sits.
func relations(d *document) (ends map[string]bool, host map[string]string) {
	ends, host = map[string]bool{}, map[string]string{}
	for _, n := range d.Process.Elements {
		if n.AttachedTo != "" {
			host[n.ID] = n.AttachedTo
		}
	}
	for _, n := range d.Process.Elements {
		if n.Source == "" {
			continue
		}
		ends[n.ID+" "+n.Source], ends[n.ID+" "+n.Target] = true, true
		if h := host[n.Source]; h != "" {
			ends[n.ID+" "+h] = true
		}
	}
	return ends, host
}

// labels are the places of the labels, by their elements.
func (d *document) labels() map[string]box {
	all := map[string]box{}
	for _, s := range d.Plane.Shapes {
		all[s.Element] = s.Label
	}
	for _, e := range d.Plane.Edges {
		all[e.Element] = e.Label
	}
	return all
}

func TestLabelsLieBesideTheLines(t *testing.T) {
	each(t, func(t *testing.T, d document) {
		labels := d.labels()
		for element, label := range labels {
			if label.W == 0 {
				continue
			}
			for _, e := range d.Plane.Edges {
				if e.touches(label) {
					t.Errorf("the label of %s lies on the edge %s", element, e.Element)
				}
			}
			for _, s := range d.Plane.Shapes {
				if s.Bounds.overlaps(label) {
					t.Errorf("the label of %s lies on %s", element, s.Element)
				}
			}
			for other, second := range labels {
				if other < element && second.W > 0 && second.overlaps(label) {
					t.Errorf("the labels of %s and %s overlap", other, element)
				}
			}
		}
	})
}

// What a letter of a task's name takes on the mean, a line of it, and the room on both sides of it.
const (
	letterWidth = 5.7
	lineHeight  = 14
	padding     = 5
)

// written is where a task's name stands: in its middle, broken where it is too long.
func (b box) written(name string) box {
	most := int((b.W - 2*padding) / letterWidth)
	longest, length, lines := 0, 0, 1
	for _, word := range strings.Fields(name) {
		n := utf8.RuneCountInString(word)
		if length > 0 && length+1+n > most {
			lines, length = lines+1, 0
		}
		if length > 0 {
			length++
		}
		length += n
		longest = max(longest, length)
	}
	w, h := float64(longest)*letterWidth, float64(lines)*lineHeight
	return box{point{b.X + (b.W-w)/2, b.Y + (b.H-h)/2}, w, h}
}

func TestTaskNamesStayClearOfTheirBoundaryEvents(t *testing.T) {
	each(t, func(t *testing.T, d document) {
		_, host := relations(&d)
		bounds := map[string]box{}
		for _, s := range d.Plane.Shapes {
			bounds[s.Element] = s.Bounds
		}
		for event, task := range host {
			if name := d.node(task).Name; bounds[task].written(name).overlaps(bounds[event]) {
				t.Errorf("the name of %s (%q) reaches under %s", task, name, event)
			}
		}
		if len(host) == 0 {
			t.Error("no boundary event found")
		}
	})
}

func TestNamedEventsGatewaysAndFlowsHaveALabel(t *testing.T) {
	each(t, func(t *testing.T, d document) {
		labels := d.labels()
		for _, n := range d.Process.Elements {
			if n.Name != "" && !strings.HasSuffix(n.XMLName.Local, "Task") && labels[n.ID].W == 0 {
				t.Errorf("%s %s is named %q, expected a place for its label", n.XMLName.Local, n.ID, n.Name)
			}
		}
	})
}

// From the start event along the default flows, where nothing went wrong, the eye goes straight on to
// the right.
func TestTheHappyPathIsOneLine(t *testing.T) {
	each(t, func(t *testing.T, d document) {
		var at point
		for _, id := range happyPath(&d) {
			for _, e := range d.Plane.Edges {
				if e.Element != id {
					continue
				}
				for _, p := range e.Waypoints {
					if at != (point{}) && (p.Y != at.Y || p.X < at.X) {
						t.Errorf("the way bends at %s (%v, %v)", id, p.X, p.Y)
					}
					at = p
				}
			}
		}
		if at == (point{}) {
			t.Error("no way from the start found")
		}
	})
}

// happyPath are the flows from the start event to an end: a gateway's default, or the only way there is.
func happyPath(d *document) []string {
	outgoing, byDefault := map[string]node{}, map[string]bool{}
	for _, n := range d.Process.Elements {
		byDefault[n.Default] = n.Default != ""
	}
	for _, n := range d.Process.Elements {
		if _, taken := outgoing[n.Source]; n.is("sequenceFlow") && (!taken || byDefault[n.ID]) {
			outgoing[n.Source] = n
		}
	}
	var path []string
	at := d.start().ID
	for flow, ok := outgoing[at]; ok && len(path) < len(d.Process.Elements); flow, ok = outgoing[at] {
		path = append(path, flow.ID)
		at = flow.Target
	}
	return path
}
