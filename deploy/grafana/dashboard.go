package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/statistics"
)

// object is a part of Grafana's JSON, in its own words.
type object = map[string]any

// dashboard is one as its file describes it.
type dashboard struct {
	Title, UID, Description string
	Variables               []struct{ Name, Label, Values string } // of their own: a series and a label
	Panels                  []figure

	variables, panels []object
	x, y, tallest     int // where the next panel goes
}

// prometheus is the data source that the viewer chose.
var prometheus = object{"type": "prometheus", "uid": "${datasource}"}

func (d *dashboard) json() object {
	tags := []string{"retry-worker"}
	return object{
		"title": d.Title, "uid": d.UID, "description": d.Description, "tags": tags, "editable": false, "refresh": "30s", "schemaVersion": 39,
		"graphTooltip": 1, // one crosshair for all panels
		"time":         object{"from": "now-6h", "to": "now"}, "timezone": "browser",
		"links":      []object{{"title": "retry-worker", "type": "dashboards", "tags": tags, "includeVars": true, "keepTime": true}},
		"templating": object{"list": d.variables}, "panels": d.panels,
	}
}

// fill adds the variables that every panel's queries use and the dashboard's own, and the panels.
func (d *dashboard) fill() error {
	d.variables = []object{
		{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1, "current": object{}},
		labelValues("job", "Job", "retry_worker_build_info, job"),
		labelValues("instance", "Instance", `retry_worker_build_info{job=~"$job"}, instance`),
	}
	for _, v := range d.Variables {
		d.variables = append(d.variables, labelValues(v.Name, v.Label, v.Values))
	}
	for i := range d.Panels {
		if err := d.Panels[i].draw(d); err != nil {
			return err
		}
	}
	return nil
}

// labelValues is a variable of all values of a series' label.
func labelValues(name, title, values string) object {
	query := "label_values(" + values + ")"
	return object{
		"name": name, "label": title, "type": "query", "query": query, "definition": query, "datasource": prometheus, "current": object{},
		"multi": true, "includeAll": true, "allValue": ".+", "sort": 1,
		"refresh": 2, // when the time range changes
	}
}

// gridWidth is Grafana's.
const gridWidth = 24

// row begins a part of the dashboard.
func (d *dashboard) row(title string) {
	d.wrap()
	d.place(object{"type": "row", "title": title, "collapsed": false}, gridWidth, 1)
	d.wrap()
}

func (d *dashboard) wrap() { d.x, d.y, d.tallest = 0, d.y+d.tallest, 0 }

// place puts a panel behind the one before, in the next line where there is no room.
func (d *dashboard) place(p object, width, height int) {
	if d.x+width > gridWidth {
		d.wrap()
	}
	p["id"], p["gridPos"] = len(d.panels)+1, object{"h": height, "w": width, "x": d.x, "y": d.y}
	d.x, d.tallest = d.x+width, max(d.tallest, height)
	d.panels = append(d.panels, p)
}

// figure describes a panel, or begins a row: the title is that of its kind.
type figure struct {
	Row, Stat, Graph, Bars string
	Description, Unit      string
	Queries                []query
	Steps                  []string // thresholds: a colour, and from where on; none for the first
	Width, Height          int      // of the grid; 0: the panel's usual one
	YesNo                  []string `yaml:"yesNo"` // the words for 1 and 0
	Stacked                bool
	Max                    *float64
	Names                  bool   // a stat shows how its series are called, not their values
	None                   string // what stands there where there is no value

	steps []object
}

// query is an expression and how its series are called. <viewer> and <policies> are what the viewer chose.
type query struct{ Expr, Legend string }

var chosen = strings.NewReplacer("<viewer>", `job=~"$job", instance=~"$instance"`, "<policies>", `policy=~"$policy"`)

func (f *figure) draw(d *dashboard) error {
	for _, text := range f.Steps {
		color, from, bounded := strings.Cut(text, " from ")
		step := object{"color": color, "value": nil}
		if bounded {
			value, err := limit(from)
			if err != nil {
				return fmt.Errorf("the step %q: %w", text, err)
			}
			step["value"] = value
		}
		f.steps = append(f.steps, step)
	}
	switch {
	case f.Row != "":
		d.row(f.Row)
	case f.Stat != "":
		f.stat(d)
	case f.Graph != "":
		f.graph(d)
	case f.Bars != "":
		f.bars(d)
	}
	return nil
}

// place puts the figure's panel into d, with what its kind alone has: options, and the fields' defaults.
func (f *figure) place(d *dashboard, kind, title string, width, height int, options, defaults object) {
	instant := kind != "timeseries"
	var targets []object
	for i, q := range f.Queries {
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": prometheus, "expr": chosen.Replace(q.Expr), "legendFormat": q.Legend,
			"format": "time_series", "instant": instant, "range": !instant,
		})
	}
	steps := f.steps
	if steps == nil {
		steps = []object{{"color": "green", "value": nil}}
	}
	defaults["unit"], defaults["mappings"] = f.Unit, []any{}
	if len(f.YesNo) == 2 {
		yes, no := object{"text": f.YesNo[0], "color": "green"}, object{"text": f.YesNo[1], "color": "red"}
		defaults["mappings"] = []any{object{"type": "value", "options": object{"1": yes, "0": no}}}
	}
	defaults["thresholds"] = object{"mode": "absolute", "steps": steps}
	if f.Max != nil {
		defaults["max"] = f.Max
	}
	if f.None != "" {
		defaults["noValue"] = f.None
	}
	d.place(object{
		"type": kind, "title": title, "description": f.Description, "datasource": prometheus, "targets": targets, "options": options,
		"fieldConfig": object{"defaults": defaults, "overrides": []any{}},
	}, cmp.Or(f.Width, width), cmp.Or(f.Height, height))
}

// reduce has a panel show the last value of each series.
var reduce = object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}

// stat shows the last value, large, in the colour of its threshold.
func (f *figure) stat(d *dashboard) {
	text := "auto"
	if f.Names {
		text = "name"
	}
	f.place(d, "stat", f.Stat, 6, 4, object{
		"colorMode": "value", "graphMode": "none", "justifyMode": "auto", "textMode": text, "orientation": "auto", "reduceOptions": reduce,
	}, object{"color": object{"mode": "thresholds"}})
}

// graph shows series over time, and its thresholds as lines.
func (f *figure) graph(d *dashboard) {
	style, stacking, fill := "off", "none", 10
	if f.steps != nil {
		style = "dashed"
	}
	if f.Stacked {
		stacking, fill = "normal", 40
	}
	f.place(d, "timeseries", f.Graph, 8, 8, object{
		"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
		"tooltip": object{"mode": "multi", "sort": "desc"},
	}, object{"min": 0, "color": object{"mode": "palette-classic"}, "custom": object{
		"drawStyle": "line", "lineWidth": 1, "fillOpacity": fill, "showPoints": "never", "spanNulls": false,
		"stacking": object{"mode": stacking, "group": "A"}, "thresholdsStyle": object{"mode": style},
	}})
}

// bars shows one bar for each series, over the whole time range.
func (f *figure) bars(d *dashboard) {
	defaults := object{"min": 0, "color": object{"mode": "thresholds"}}
	if f.Unit == "short" { // Prometheus extrapolates to the range's ends, so that counts are not whole
		defaults["decimals"] = 0
	}
	f.place(d, "bargauge", f.Bars, 8, 8, object{
		"displayMode": "basic", "orientation": "horizontal", "showUnfilled": true, "valueMode": "color", "minVizHeight": 12, "minVizWidth": 8,
		"reduceOptions": reduce,
	}, defaults)
}

// limit reads where a threshold begins: at a number, or at so many times what a rule wants of a figure or raises an alert
// at, as "60 * target RN-BIL-004 time_to_success_median" (R19).
func limit(text string) (float64, error) {
	if text == "alert TRD-0003" {
		return deadletter.AlertAbove, nil
	}
	times, of, product := strings.Cut(text, " * ")
	if !product {
		times, of = "1", text
	}
	if words := strings.Fields(of); len(words) == 3 {
		for _, k := range statistics.All(nil, []string{decision.DefaultPolicy}, time.Time{}) {
			for _, g := range k.Goals {
				if g.Kind == words[0] && string(g.Rule) == words[1] && k.Name == words[2] {
					n, err := strconv.ParseFloat(times, 64)
					return n * g.Limit, err
				}
			}
		}
	}
	return strconv.ParseFloat(of, 64)
}
