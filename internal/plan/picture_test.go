package plan_test

import (
	"encoding/xml"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/plan"
)

// drawing is what the tests look at in a picture.
type drawing struct {
	XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
	Role    string   `xml:"role,attr"`
	Labels  string   `xml:"aria-labelledby,attr"`
	Height  float64  `xml:"height,attr"`
	Title   label    `xml:"title"`
	Desc    label    `xml:"desc"`
	Style   string   `xml:"style"`
	Rects   []shape  `xml:"rect"`
	Lines   []shape  `xml:"line"`
	Texts   []label  `xml:"text"`
}

type label struct {
	ID   string  `xml:"id,attr"`
	X    float64 `xml:"x,attr"`
	Y    float64 `xml:"y,attr"`
	Text string  `xml:",chardata"`
}

type shape struct {
	Class string  `xml:"class,attr"`
	X     float64 `xml:"x,attr"`
	Width float64 `xml:"width,attr"`
	X1    float64 `xml:"x1,attr"`
	Y1    float64 `xml:"y1,attr"`
}

func read(t *testing.T, svg []byte) drawing {
	t.Helper()
	var d drawing
	if err := xml.Unmarshal(svg, &d); err != nil {
		t.Fatalf("the picture is no XML: %v", err)
	}
	return d
}

// of are the shapes of a class above the legend, in the order of the rows.
func (d *drawing) of(shapes []shape, class string, number int) []shape {
	all := slices.DeleteFunc(slices.Clone(shapes), func(s shape) bool { return s.Class != class })
	return all[:min(number, len(all))]
}

// zero is where the axis begins: at its first tick.
func (d *drawing) zero() float64 { return d.of(d.Lines, "grid", 1)[0].X1 }

// On a linear axis each bar begins, has its mark and ends at places that are as far from the axis' begin as their times are long.
func TestBarsAreToScale(t *testing.T) {
	for _, name := range []string{"tiss", "near"} {
		p := plans(t)[name]
		d := read(t, p.SVG())
		n := len(p.Retries)
		bars, marks := d.of(d.Rects, "bar", n), d.of(d.Lines, "nominal", n)
		if len(bars) != n || len(marks) != n {
			t.Fatalf("%s: %d bars and %d marks, want %d", name, len(bars), len(marks), n)
		}
		perSecond := (marks[n-1].X1 - d.zero()) / time.Duration(p.Retries[n-1].FromFirst.Nominal).Seconds()
		at := func(what string, x float64, of plan.Time) {
			t.Helper()
			if want := d.zero() + time.Duration(of).Seconds()*perSecond; math.Abs(x-want) > 0.02 {
				t.Errorf("%s: %s stands at %g, want %g", name, what, x, want)
			}
		}
		for i, r := range p.Retries {
			at("a bar's begin", bars[i].X, r.FromFirst.Earliest)
			at("a mark", marks[i].X1, r.FromFirst.Nominal)
			if !r.MayPassLimit {
				at("a bar's end", bars[i].X+bars[i].Width, r.FromFirst.Latest)
				continue
			}
			at("the end of a bar that passes the limit", bars[i].X+bars[i].Width, p.TotalLimit)
			beyond := d.of(d.Rects, "beyond", 1)[0]
			at("what passes it", beyond.X, p.TotalLimit)
			at("its end", beyond.X+beyond.Width, r.FromFirst.Latest)
		}
	}
}

// A logarithmic axis is there only where a linear one shows nothing of the first retry, and says so.
func TestLogarithmicOnlyIfNeeded(t *testing.T) {
	for name, p := range plans(t) {
		d := read(t, p.SVG())
		got := slices.ContainsFunc(d.Texts, func(l label) bool { return strings.Contains(l.Text, "logarithmic scale") })
		if want := name == "wide"; got != want {
			t.Errorf("%s: logarithmic %v, want %v", name, got, want)
		}
	}
	d := read(t, plans(t)["wide"].SVG())
	var places []float64
	for _, tick := range []string{"1 s", "10 s"} {
		for _, l := range d.Texts {
			if l.Text == tick && l.X == math.Trunc(l.X*100)/100 && l.Y > d.Height/2 {
				places = append(places, l.X)
			}
		}
	}
	if len(places) != 2 {
		t.Fatalf("ticks at %v, want those of 1 s and 10 s", places)
	}
	marks := d.of(d.Lines, "nominal", 2) // after 1 s and 4 s
	if got, want := marks[1].X1-marks[0].X1, (places[1]-places[0])*math.Log10(4); math.Abs(got-want) > 0.5 {
		t.Errorf("the second mark is %g behind the first, want %g", got, want)
	}
}

// Whatever a policy may be, all of its ladder is inside the picture, and nothing is no number.
func TestStrangeLadders(t *testing.T) {
	const ever = time.Duration(math.MaxInt64)
	for name, p := range map[string]*decision.Policy{
		"no wait":           {Name: "a", MaxRetries: 3, Backoff: decision.BackoffRule{Factor: 1, Rounding: time.Millisecond}},
		"a nanosecond":      {Name: "b", MaxRetries: 3, Backoff: constant(1)},
		"for ever":          {Name: "c", MaxRetries: 1000, Backoff: exponential(time.Minute, 10, ever, 0.9)},
		"for ever, limited": {Name: "d", MaxRetries: 1000, TotalLimit: ever, Backoff: exponential(time.Minute, 10, ever, 0.9)},
		"limit at once":     {Name: "e", MaxRetries: 3, TotalLimit: time.Second, Backoff: constant(time.Minute)},
		"an odd name":       {Name: "f\"<&>\x00 ção", MaxRetries: 1, Backoff: constant(time.Minute)},
		"a hundred":         {Name: "g", MaxRetries: 100, Backoff: constant(time.Second)},
	} {
		ladder := plan.Of(p, decision.OwnPolicy{})
		svg := ladder.SVG()
		d := read(t, svg)
		if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
			t.Errorf("%s: the picture holds what is no number", name)
		}
		for _, s := range append(d.of(d.Lines, "nominal", 1000), d.of(d.Rects, "bar", 1000)...) {
			if x := max(s.X, s.X1); x < 0 || x+s.Width > 860 || s.Y1 > d.Height {
				t.Errorf("%s: %+v stands outside", name, s)
			}
		}
		for _, l := range d.Texts {
			if l.Y > d.Height || l.X > 860 {
				t.Errorf("%s: %q stands outside", name, l.Text)
			}
		}
		if name == "limit at once" && (len(ladder.Retries) != 0 || ladder.NeverScheduled != 3) {
			t.Errorf("%s: %d retries, %d never scheduled", name, len(ladder.Retries), ladder.NeverScheduled)
		}
	}
}
