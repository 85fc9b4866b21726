package main

import (
	"cmp"
	"fmt"
	"strings"
)

// object is a part of Grafana's JSON, in its own words.
type object = map[string]any

type dashboard struct {
	title, uid, description string
	variables, panels       []object

	x, y, tallest int // where the next panel goes
}

// prometheus is the data source that the viewer chose.
var prometheus = object{"type": "prometheus", "uid": "${datasource}"}

func (d *dashboard) json() object {
	tags := []string{"retry-worker"}
	return object{
		"title": d.title, "uid": d.uid, "description": d.description, "tags": tags, "editable": false, "refresh": "30s", "schemaVersion": 39,
		"graphTooltip": 1, // one crosshair for all panels
		"time":         object{"from": "now-6h", "to": "now"}, "timezone": "browser",
		"links":      []object{{"title": "retry-worker", "type": "dashboards", "tags": tags, "includeVars": true, "keepTime": true}},
		"templating": object{"list": d.variables}, "panels": d.panels,
	}
}

// newDashboard has the variables that every panel's queries use.
func newDashboard(title, uid, description string) *dashboard {
	source := object{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1, "current": object{}}
	return &dashboard{title: title, uid: uid, description: description, variables: []object{
		source, labelValues("job", "Job", "retry_worker_build_info", "job"),
		labelValues("instance", "Instance", `retry_worker_build_info{job=~"$job"}`, "instance"),
	}}
}

// labelValues is a variable of all values of a label.
func labelValues(name, title, series, label string) object {
	query := fmt.Sprintf("label_values(%s, %s)", series, label)
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

// figure describes a panel: what it shows, in what unit, by which queries.
type figure struct {
	title, description, unit string
	queries                  []query
	steps                    []object // thresholds; nil: none
	width, height            int      // of the grid; 0: the panel's usual one
	mappings                 []any
	stacked                  bool
	max                      *float64
	names                    bool   // a stat shows how its series are called, not their values
	none                     string // what stands there where there is no value
}

// query is an expression and how its series are called.
type query struct{ expr, legend string }

// place puts the figure's panel into d, with what its kind alone has: options, and the fields' defaults.
func (f *figure) place(d *dashboard, kind string, width, height int, options, defaults object) {
	instant := kind != "timeseries"
	var targets []object
	for i, q := range f.queries {
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": prometheus, "expr": q.expr, "legendFormat": q.legend,
			"format": "time_series", "instant": instant, "range": !instant,
		})
	}
	steps := f.steps
	if steps == nil {
		steps = []object{from(nil, "green")}
	}
	defaults["unit"], defaults["mappings"] = f.unit, append([]any{}, f.mappings...)
	defaults["thresholds"] = object{"mode": "absolute", "steps": steps}
	if f.max != nil {
		defaults["max"] = f.max
	}
	if f.none != "" {
		defaults["noValue"] = f.none
	}
	d.place(object{
		"type": kind, "title": f.title, "description": f.description, "datasource": prometheus, "targets": targets, "options": options,
		"fieldConfig": object{"defaults": defaults, "overrides": []any{}},
	}, cmp.Or(f.width, width), cmp.Or(f.height, height))
}

// reduce has a panel show the last value of each series.
var reduce = object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}

// stat shows the last value, large, in the colour of its threshold.
func (d *dashboard) stat(f figure) {
	text := "auto"
	if f.names {
		text = "name"
	}
	f.place(d, "stat", 6, 4, object{
		"colorMode": "value", "graphMode": "none", "justifyMode": "auto", "textMode": text, "orientation": "auto", "reduceOptions": reduce,
	}, object{"color": object{"mode": "thresholds"}})
}

// graph shows series over time, and its thresholds as lines.
func (d *dashboard) graph(f figure) {
	style, stacking, fill := "off", "none", 10
	if f.steps != nil {
		style = "dashed"
	}
	if f.stacked {
		stacking, fill = "normal", 40
	}
	f.place(d, "timeseries", 8, 8, object{
		"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
		"tooltip": object{"mode": "multi", "sort": "desc"},
	}, object{"min": 0, "color": object{"mode": "palette-classic"}, "custom": object{
		"drawStyle": "line", "lineWidth": 1, "fillOpacity": fill, "showPoints": "never", "spanNulls": false,
		"stacking": object{"mode": stacking, "group": "A"}, "thresholdsStyle": object{"mode": style},
	}})
}

// bars shows one bar for each series, over the whole time range.
func (d *dashboard) bars(f figure) {
	defaults := object{"min": 0, "color": object{"mode": "thresholds"}}
	if f.unit == "short" { // Prometheus extrapolates to the range's ends, so that counts are not whole
		defaults["decimals"] = 0
	}
	f.place(d, "bargauge", 8, 8, object{
		"displayMode": "basic", "orientation": "horizontal", "showUnfilled": true, "valueMode": "color", "minVizHeight": 12, "minVizWidth": 8,
		"reduceOptions": reduce,
	}, defaults)
}

// of are the series of a metric that the viewer chose, and that match.
func of(metric string, matchers ...string) string {
	return metric + "{" + strings.Join(append([]string{`job=~"$job"`, `instance=~"$instance"`}, matchers...), ", ") + "}"
}

// chosen is the matcher of the policies that the viewer chose.
const chosen = `policy=~"$policy"`

// from is a threshold: it holds from its value on; the first, without one, below all others.
func from(value any, color string) object { return object{"color": color, "value": value} }

// atMost is green up to a limit and red from it on.
func atMost(limit float64) []object { return []object{from(nil, "green"), from(limit, "red")} }

// atMostTwo is orange between two limits.
func atMostTwo(first, second float64) []object {
	return []object{from(nil, "green"), from(first, "orange"), from(second, "red")}
}

// atLeastTwo is red below the first limit, and green from the second on.
func atLeastTwo(first, second float64) []object {
	return []object{from(nil, "red"), from(first, "orange"), from(second, "green")}
}
