package simulate

import (
	_ "embed"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/destination"
)

// bins that a picture's time is cut into.
const bins = 240

// curve is what a picture shows of one way to play. Its methods do nothing where it is nil.
type curve struct {
	from, to         time.Duration
	waits            [bins]int // changes of how many wait
	answered, failed [bins]int // submissions
	phases           [bins]destination.Phase
}

func (c *curve) bin(at time.Duration) (int, bool) {
	if c == nil || at >= c.to {
		return 0, false
	}
	return max(0, int(int64(at-c.from)*bins/int64(c.to-c.from))), true
}

func (c *curve) wait(at time.Duration, change int) {
	if i, ok := c.bin(at); ok {
		c.waits[i] += change
	}
}

func (c *curve) attempt(at time.Duration, failed bool) {
	if i, ok := c.bin(at); ok && failed {
		c.failed[i]++
	} else if ok {
		c.answered[i]++
	}
}

func (c *curve) phase(at time.Duration, phase destination.Phase) {
	if i, ok := c.bin(at); ok {
		c.phases[i] = phase
	}
}

// The picture's measures in pixels.
const (
	width, margin = 860, 16
	plotLeft      = 120
	plotWidth     = width - plotLeft - margin
	plotHeight    = 90
	rowHeight     = plotHeight + 62
	head          = 74
)

//go:embed picture.css
var style string

// Picture draws the longest outage as SVG: who waits, what is submitted, and the destination's state, for the plain
// ladder, the policy and the clairvoyant. The same options give the same bytes.
func Picture(outages []Outage, o Options) []byte {
	longest := slices.MaxFunc(outages, func(a, b Outage) int { return int((a.End - a.Start) - (b.End - b.Start)) })
	one := []Outage{longest}
	arrivals := o.arrivals(one)
	var tallies [3]tally
	for i := range tallies {
		tallies[i].curve = &curve{from: longest.Start - before, to: longest.End + after}
	}
	play(one, arrivals, &o, false, &tallies[0])
	play(one, arrivals, &o, o.Gate, &tallies[1])
	foresee(one, arrivals, &o, &tallies[2])

	var b strings.Builder
	height := head + 3*rowHeight
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" class="simulation" role="img" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n",
		width, height, width, height)
	title := fmt.Sprintf("%s down for %s: %g claims a minute, room for %d", longest.Service, longest.End-longest.Start,
		o.ClaimsPerMinute, o.Capacity)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>\n%s</style>\n<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n",
		html.EscapeString(title), style, width, height)
	text(&b, margin, 30, "name", title)
	text(&b, margin, 50, "faint", "Line: claims that wait. Bars: submissions, answered (green) and failed (red). "+
		"Shaded: the portal is down. Strip: the gate's state.")
	names := [...]string{"ladder", "policy", "clairvoyant"}
	for i := range tallies {
		tallies[i].draw(&b, names[i], head+i*rowHeight, longest)
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func text(b *strings.Builder, x, y int, class, words string) {
	fmt.Fprintf(b, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, html.EscapeString(words))
}

// draw draws one row.
func (t *tally) draw(b *strings.Builder, name string, top int, o Outage) {
	c, f := t.curve, t.figures()
	x := func(at float64) float64 { return plotLeft + at*plotWidth/bins }
	span := float64(c.to - c.from)
	from := x(float64(o.Start-c.from) / span * bins)
	fmt.Fprintf(b, `<rect class="down" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n",
		from, top, x(float64(o.End-c.from)/span*bins)-from, plotHeight)
	waits, most, mostSent := c.series()
	scale := func(n, of, height int) float64 { return float64(n) * float64(height) / float64(max(1, of)) }
	var line strings.Builder
	phase := destination.Phase("")
	for i, n := range waits {
		left := x(float64(i))
		fmt.Fprintf(&line, "%.1f,%.1f ", left, float64(top+plotHeight)-scale(n, most, plotHeight))
		y := float64(top + plotHeight)
		for _, bar := range [...]struct {
			class string
			n     int
		}{{"good", c.answered[i]}, {"bad", c.failed[i]}} {
			if h := scale(bar.n, mostSent, plotHeight/2); bar.n > 0 {
				y -= h
				fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="2.4" height="%.1f"/>`+"\n", bar.class, left, y, h)
			}
		}
		if c.phases[i] != "" {
			phase = c.phases[i]
		}
		if phase != "" {
			fmt.Fprintf(b, `<rect class="is-%s" x="%.1f" y="%d" width="3.1" height="6"/>`+"\n", phase, left, top+plotHeight+4)
		}
	}
	fmt.Fprintf(b, `<polyline class="waiting" points="%s"/>`+"\n", strings.TrimSpace(line.String()))
	text(b, margin, top+16, "name", name)
	text(b, margin, top+36, "faint", fmt.Sprintf("at most %d wait", most))
	text(b, plotLeft, top+plotHeight+28, "faint",
		fmt.Sprintf("%.1f %% recovered, %.2f attempts a claim of which %.2f wasted, late by %.1f min (median)",
			100*f.Recovered, f.Attempts, f.Wasted, f.LatenessP50))
}

// series returns how many wait in each bin, the most of that, and the most submissions in a bin.
func (c *curve) series() (waits [bins]int, most, mostSent int) {
	n := 0
	for i := range waits {
		n += c.waits[i]
		waits[i] = n
		most, mostSent = max(most, n), max(mostSent, c.answered[i]+c.failed[i])
	}
	return waits, most, mostSent
}
