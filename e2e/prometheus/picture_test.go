package prometheus_test

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Panel is a panel and its data.
type Panel struct {
	Kind       string // row, stat, timeseries or bargauge
	Title      string
	X, Y, W, H int    // on Grafana's grid of 24 columns
	Unit       string // Grafana's word
	Thresholds []Threshold
	Mappings   map[string]string // words in place of values
	Names      bool              // a stat shows names in place of values
	Whole      bool              // values have no decimals
	Stacked    bool
	None       string // where there is no value
	Lines      []Line
}

// Threshold holds from its value on.
type Threshold struct {
	Color string
	From  float64
}

// Line is one series: a point each instant, or one only.
type Line struct {
	Name   string
	Points []Point
}

// Point is a value at an instant.
type Point struct {
	At    time.Time
	Value float64
}

const (
	cellWidth, cellHeight = 50, 30
	gap                   = 8
	barHeight             = 15
)

var palette = []string{"#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#8ab8ff", "#96d98d", "#ffb357", "#ca95e5"}

var colors = map[string]string{"green": "#73bf69", "orange": "#ff9830", "red": "#f2495c"}

// SVG draws the panels where they lie.
func SVG(title string, panels []Panel) string {
	d := &drawing{}
	bottom := 0
	for i := range panels {
		bottom = max(bottom, panels[i].Y+panels[i].H)
		d.panel(&panels[i])
	}
	width, height := 24*cellWidth+gap, bottom*cellHeight+gap
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="Inter, Helvetica, Arial, sans-serif" role="img">
<title>%s</title>
<rect width="100%%" height="100%%" fill="#111217"/>
%s</svg>
`, width, height, width, height, html.EscapeString(title), d.String())
}

type drawing struct{ strings.Builder }

// box is a rectangle of the picture.
type box struct{ x, y, w, h float64 }

func (d *drawing) text(x, y float64, size int, color, anchor, s string) {
	fmt.Fprintf(d, `<text x="%.0f" y="%.0f" font-size="%d" fill="%s" text-anchor="%s">%s</text>`+"\n", x, y, size, color, anchor, html.EscapeString(s))
}

func (d *drawing) panel(p *Panel) {
	b := box{float64(p.X*cellWidth + gap), float64(p.Y*cellHeight + gap), float64(p.W*cellWidth - gap), float64(p.H*cellHeight - gap)}
	if p.Kind == "row" {
		d.text(b.x, b.y+16, 14, "#ccccdc", "start", p.Title)
		return
	}
	fmt.Fprintf(d, `<rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="3" fill="#181b1f" stroke="#25272e"/>`+"\n", b.x, b.y, b.w, b.h)
	d.text(b.x+8, b.y+17, 12, "#ccccdc", "start", p.Title)
	inner := box{b.x + 8, b.y + 26, b.w - 16, b.h - 32}
	switch p.Kind {
	case "stat":
		d.stat(p, inner)
	case "bargauge":
		d.bars(p, inner)
	default:
		d.graph(p, inner)
	}
}

// color of a value by its threshold.
func (p *Panel) color(v float64) string {
	color := "#73bf69"
	for _, t := range p.Thresholds {
		if v >= t.From {
			color = colors[t.Color]
		}
	}
	return color
}

func (p *Panel) word(v float64) string {
	if w, mapped := p.Mappings[strconv.FormatFloat(v, 'f', -1, 64)]; mapped {
		return w
	}
	if p.Whole {
		v = math.Round(v)
	}
	return Format(v, p.Unit)
}

// stat shows the last value: large where there is one series, in a list where there are several.
func (d *drawing) stat(p *Panel, b box) {
	shown := func(l Line) (word, color string) {
		v := l.Points[len(l.Points)-1].Value
		if p.Names {
			return l.Name, p.color(v)
		}
		return p.word(v), p.color(v)
	}
	switch len(p.Lines) {
	case 0:
		d.text(b.x+b.w/2, b.y+b.h/2+8, 20, "#8e8e99", "middle", p.None)
	case 1:
		word, color := shown(p.Lines[0])
		d.text(b.x+b.w/2, b.y+b.h/2+8, 26, color, "middle", word)
	default:
		step := min(b.h/float64(len(p.Lines)), 22)
		for i, l := range p.Lines {
			word, color := shown(l)
			d.text(b.x, b.y+step*(float64(i)+0.7), 11, "#ccccdc", "start", l.Name)
			d.text(b.x+b.w, b.y+step*(float64(i)+0.7), 15, color, "end", word)
		}
	}
}

// bars shows each series' last value as a bar.
func (d *drawing) bars(p *Panel, b box) {
	most := 0.0
	for _, l := range p.Lines {
		most = max(most, l.Points[0].Value)
	}
	step := min(float64(barHeight+4), b.h/float64(max(len(p.Lines), 1)))
	const names, values = 0.42, 70
	for i, l := range p.Lines {
		v, y := l.Points[0].Value, b.y+step*float64(i)
		d.text(b.x, y+step*0.7, int(min(11, step-1)), "#ccccdc", "start", l.Name)
		long := 0.0
		if most > 0 {
			long = max(v, 0) / most * (b.w*(1-names) - values)
		}
		fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", b.x+b.w*names, y, long, step-3, p.color(v))
		d.text(b.x+b.w, y+step*0.7, int(min(11, step-1)), p.color(v), "end", p.word(v))
	}
}

// graph shows the series over time, with a legend below and the thresholds as lines.
func (d *drawing) graph(p *Panel, b box) {
	lines := p.Lines
	if p.Stacked {
		lines = stack(lines)
	}
	from, to, most := extent(lines)
	if most == 0 {
		most = 1
	}
	legend := min(float64(13*((len(lines)+2)/3)), b.h/3)
	plot := box{b.x + 48, b.y + 4, b.w - 54, b.h - legend - 24}
	at := func(q Point) (x, y float64) {
		x = plot.x
		if span := to.Sub(from); span > 0 {
			x += float64(q.At.Sub(from)) / float64(span) * plot.w
		}
		return x, plot.y + plot.h*(1-q.Value/most)
	}
	for i := range 3 {
		v := most * float64(i) / 2
		_, y := at(Point{from, v})
		fmt.Fprintf(d, `<path d="M%.0f %.0fH%.0f" stroke="#2c2e35"/>`+"\n", plot.x, y, plot.x+plot.w)
		d.text(plot.x-4, y+4, 10, "#8e8e99", "end", p.word(v))
	}
	for _, t := range p.Thresholds {
		if _, y := at(Point{from, t.From}); t.From > 0 && t.From <= most {
			fmt.Fprintf(d, `<path d="M%.0f %.1fH%.0f" stroke="%s" stroke-dasharray="6 4"/>`+"\n", plot.x, y, plot.x+plot.w, colors[t.Color])
		}
	}
	for i, l := range lines {
		d.line(l, palette[i%len(palette)], at)
		d.text(b.x+12+float64(i%3)*b.w/3, b.y+b.h-legend+4+13*float64(i/3), 10, palette[i%len(palette)], "start", cut(p.Lines[i].Name, b.w/3))
	}
	d.text(plot.x, plot.y+plot.h+13, 10, "#8e8e99", "start", "0 s")
	d.text(plot.x+plot.w, plot.y+plot.h+13, 10, "#8e8e99", "end", fmt.Sprintf("%.0f s", to.Sub(from).Seconds()))
}

func (d *drawing) line(l Line, color string, at func(Point) (x, y float64)) {
	fmt.Fprintf(d, `<path fill="none" stroke="%s" stroke-width="1.5" d="`, color)
	move := true
	for _, q := range l.Points {
		if math.IsNaN(q.Value) {
			move = true
			continue
		}
		x, y := at(q)
		if move {
			fmt.Fprintf(d, "M%.1f %.1f", x, y)
			if len(l.Points) == 1 {
				fmt.Fprint(d, "h3")
			}
		} else {
			fmt.Fprintf(d, "L%.1f %.1f", x, y)
		}
		move = false
	}
	d.WriteString("\"/>\n")
}

// cut is as much of a name as fits, in the legend's letters.
func cut(name string, width float64) string {
	const letter = 5.6
	if letters := []rune(name); float64(len(letters))*letter > width {
		return string(letters[:max(int(width/letter)-1, 1)]) + "…"
	}
	return name
}

// stack adds each series to those before it.
func stack(lines []Line) []Line {
	sums := map[int64]float64{}
	var all []Line
	for _, l := range lines {
		sum := Line{Name: l.Name}
		for _, q := range l.Points {
			if !math.IsNaN(q.Value) {
				sums[q.At.UnixMilli()] += q.Value
			}
			sum.Points = append(sum.Points, Point{q.At, sums[q.At.UnixMilli()]})
		}
		all = append(all, sum)
	}
	return all
}

// extent of the series: from when to when, and the largest value.
func extent(lines []Line) (from, to time.Time, most float64) {
	for _, l := range lines {
		for _, q := range l.Points {
			if from.IsZero() || q.At.Before(from) {
				from = q.At
			}
			if q.At.After(to) {
				to = q.At
			}
			if !math.IsNaN(q.Value) {
				most = max(most, q.Value)
			}
		}
	}
	return from, to, most
}

// scale is how a unit is written from some value on.
type scale struct {
	from, divisor float64
	suffix        string
}

var scales = map[string][]scale{
	"s": {{86400, 86400, " d"}, {3600, 3600, " h"}, {60, 60, " min"}, {1, 1, " s"}, {1e-3, 1e-3, " ms"}, {0, 1e-6, " µs"}},
	"m": {{1440, 1440, " d"}, {60, 60, " h"}, {1, 1, " min"}, {0, 1.0 / 60, " s"}},

	"bytes":       {{1 << 30, 1 << 30, " GiB"}, {1 << 20, 1 << 20, " MiB"}, {1 << 10, 1 << 10, " KiB"}, {0, 1, " B"}},
	"percentunit": {{0, 0.01, "%"}},
	"ops":         {{0, 1, "/s"}},
	"cpm":         {{0, 1, "/min"}},
}

// Format writes a value in one of Grafana's units.
func Format(v float64, unit string) string {
	if math.IsNaN(v) {
		return "–"
	}
	i := slices.IndexFunc(scales[unit], func(s scale) bool { return math.Abs(v) >= s.from })
	if i < 0 {
		return short(v)
	}
	s := scales[unit][i]
	if v == 0 {
		s.divisor, s.suffix = 1, scales[unit][max(len(scales[unit])-1, 0)].suffix
	}
	return short(v/s.divisor) + s.suffix
}

// short has three digits or so.
func short(v float64) string {
	decimals := 2
	switch a := math.Abs(v); {
	case a >= 100:
		decimals = 0
	case a >= 10:
		decimals = 1
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
