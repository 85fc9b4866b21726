// Package grafana makes the service's Grafana dashboards: what is the same in every panel stands once, and the thresholds
// are the journal's targets, not copies of them.
package grafana

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// File is a dashboard as it is shipped.
type File struct {
	Name    string // in the folder dashboards
	Content []byte // JSON, indented
}

// Files are all dashboards.
func Files() ([]File, error) {
	var files []File
	for name, d := range map[string]*dashboard{"retry-worker-business.json": business(), "retry-worker-operations.json": operations()} {
		var text bytes.Buffer
		to := json.NewEncoder(&text)
		to.SetEscapeHTML(false) // expressions hold < and >
		to.SetIndent("", "  ")
		if err := to.Encode(d); err != nil {
			return nil, fmt.Errorf("make %s: %w", name, err)
		}
		files = append(files, File{name, text.Bytes()})
	}
	return files, nil
}

// dashboard and what follows are Grafana's own words.
type dashboard struct {
	Title         string    `json:"title"`
	UID           string    `json:"uid"`
	Description   string    `json:"description"`
	Tags          []string  `json:"tags"`
	Editable      bool      `json:"editable"`
	GraphTooltip  int       `json:"graphTooltip"` // 1: one crosshair for all panels
	Refresh       string    `json:"refresh"`
	SchemaVersion int       `json:"schemaVersion"`
	Time          timeRange `json:"time"`
	Timezone      string    `json:"timezone"`
	Links         []link    `json:"links"`
	Templating    struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Panels []*panel `json:"panels"`

	x, y, tallest int // where the next panel goes
}

type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type link struct {
	Title       string   `json:"title"`
	Type        string   `json:"type"`
	Tags        []string `json:"tags"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
}

type variable struct {
	Name       string      `json:"name"`
	Label      string      `json:"label"`
	Type       string      `json:"type"`
	Query      string      `json:"query"`
	Datasource *datasource `json:"datasource,omitempty"`
	Definition string      `json:"definition,omitempty"`
	Multi      bool        `json:"multi"`
	IncludeAll bool        `json:"includeAll"`
	AllValue   string      `json:"allValue,omitempty"`
	Refresh    int         `json:"refresh"` // 2: when the time range changes
	Sort       int         `json:"sort"`
	Current    struct{}    `json:"current"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// prometheus is the data source that the viewer chose.
var prometheus = &datasource{Type: "prometheus", UID: "${datasource}"}

type panel struct {
	ID          int            `json:"id"`
	Type        string         `json:"type"`
	Title       string         `json:"title"`
	Description string         `json:"description,omitempty"`
	Datasource  *datasource    `json:"datasource,omitempty"`
	GridPos     gridPos        `json:"gridPos"`
	FieldConfig *fieldConfig   `json:"fieldConfig,omitempty"`
	Options     map[string]any `json:"options,omitempty"`
	Targets     []target       `json:"targets,omitempty"`
	Collapsed   *bool          `json:"collapsed,omitempty"` // of a row
}

type gridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type fieldConfig struct {
	Defaults  defaults `json:"defaults"`
	Overrides []any    `json:"overrides"`
}

type defaults struct {
	Unit       string         `json:"unit"`
	Decimals   *int           `json:"decimals,omitempty"`
	Min        *float64       `json:"min,omitempty"`
	Max        *float64       `json:"max,omitempty"`
	NoValue    string         `json:"noValue,omitempty"`
	Color      map[string]any `json:"color,omitempty"`
	Mappings   []any          `json:"mappings"`
	Thresholds thresholds     `json:"thresholds"`
	Custom     map[string]any `json:"custom,omitempty"`
}

type thresholds struct {
	Mode  string `json:"mode"`
	Steps []step `json:"steps"`
}

// step holds from its value on; the first, without one, below all others.
type step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

type target struct {
	RefID        string      `json:"refId"`
	Datasource   *datasource `json:"datasource"`
	Expr         string      `json:"expr"`
	LegendFormat string      `json:"legendFormat"`
	Format       string      `json:"format"`
	Instant      bool        `json:"instant"`
	Range        bool        `json:"range"`
}

// newDashboard has the variables that every panel's queries use.
func newDashboard(title, uid, description string) *dashboard {
	d := &dashboard{
		Title: title, UID: uid, Description: description, Tags: []string{"retry-worker"}, GraphTooltip: 1, Refresh: "30s",
		SchemaVersion: 39, Time: timeRange{"now-6h", "now"}, Timezone: "browser",
		Links: []link{{Title: "retry-worker", Type: "dashboards", Tags: []string{"retry-worker"}, IncludeVars: true, KeepTime: true}},
	}
	d.Templating.List = []variable{
		{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus", Refresh: 1},
		labelValues("job", "Job", "retry_worker_build_info", "job"),
		labelValues("instance", "Instance", `retry_worker_build_info{job=~"$job"}`, "instance"),
	}
	return d
}

// labelValues is a variable of all values of a label.
func labelValues(name, title, series, label string) variable {
	query := fmt.Sprintf("label_values(%s, %s)", series, label)
	return variable{
		Name: name, Label: title, Type: "query", Query: query, Definition: query, Datasource: prometheus,
		Multi: true, IncludeAll: true, AllValue: ".+", Refresh: 2, Sort: 1,
	}
}

// gridWidth is Grafana's.
const gridWidth = 24

// row begins a part of the dashboard.
func (d *dashboard) row(title string) {
	d.wrap()
	open := false
	d.place(&panel{Type: "row", Title: title, Collapsed: &open}, gridWidth, 1)
	d.wrap()
}

func (d *dashboard) wrap() { d.x, d.y, d.tallest = 0, d.y+d.tallest, 0 }

// place puts a panel behind the one before, in the next line where there is no room.
func (d *dashboard) place(p *panel, width, height int) {
	if d.x+width > gridWidth {
		d.wrap()
	}
	p.ID, p.GridPos = len(d.Panels)+1, gridPos{H: height, W: width, X: d.x, Y: d.y}
	d.x, d.tallest = d.x+width, max(d.tallest, height)
	d.Panels = append(d.Panels, p)
}

// figure describes a panel: what it shows, in what unit, by which queries.
type figure struct {
	title, description, unit string
	queries                  []query
	steps                    []step // thresholds; nil: none
	width, height            int    // of the grid; 0: the panel's usual one
	mappings                 []any
	stacked                  bool
	max                      *float64
	names                    bool   // a stat shows how its series are called, not their values
	none                     string // what stands there where there is no value
}

// query is an expression and how its series are called.
type query struct{ expr, legend string }

func (f *figure) panel(kind string, instant bool) *panel {
	p := &panel{
		Type: kind, Title: f.title, Description: f.description, Datasource: prometheus,
		FieldConfig: &fieldConfig{Overrides: []any{}, Defaults: defaults{
			Unit: f.unit, Mappings: f.mappings, Max: f.max, NoValue: f.none,
			Thresholds: thresholds{Mode: "absolute", Steps: f.steps},
		}},
	}
	if p.FieldConfig.Defaults.Mappings == nil {
		p.FieldConfig.Defaults.Mappings = []any{}
	}
	if f.steps == nil {
		p.FieldConfig.Defaults.Thresholds.Steps = []step{{Color: "green"}}
	}
	for i, q := range f.queries {
		p.Targets = append(p.Targets, target{
			RefID: string(rune('A' + i)), Datasource: prometheus, Expr: q.expr, LegendFormat: q.legend,
			Format: "time_series", Instant: instant, Range: !instant,
		})
	}
	return p
}

// reduce has a panel show the last value of each series.
var reduce = map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}

// stat shows the last value, large, in the colour of its threshold.
func (d *dashboard) stat(f figure) {
	p := f.panel("stat", true)
	text := "auto"
	if f.names {
		text = "name"
	}
	p.Options = map[string]any{
		"colorMode": "value", "graphMode": "none", "justifyMode": "auto", "textMode": text, "orientation": "auto", "reduceOptions": reduce,
	}
	p.FieldConfig.Defaults.Color = map[string]any{"mode": "thresholds"}
	d.place(p, orElse(f.width, 6), orElse(f.height, 4))
}

// graph shows series over time, and its thresholds as lines.
func (d *dashboard) graph(f figure) {
	p := f.panel("timeseries", false)
	zero := 0.0
	p.FieldConfig.Defaults.Min = &zero
	p.FieldConfig.Defaults.Color = map[string]any{"mode": "palette-classic"}
	style, stacking, fill := "off", "none", 10
	if f.steps != nil {
		style = "dashed"
	}
	if f.stacked {
		stacking, fill = "normal", 40
	}
	p.FieldConfig.Defaults.Custom = map[string]any{
		"drawStyle": "line", "lineWidth": 1, "fillOpacity": fill, "showPoints": "never", "spanNulls": false,
		"stacking": map[string]any{"mode": stacking, "group": "A"}, "thresholdsStyle": map[string]any{"mode": style},
	}
	p.Options = map[string]any{
		"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
		"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
	}
	d.place(p, orElse(f.width, 8), 8)
}

// bars shows one bar for each series, over the whole time range.
func (d *dashboard) bars(f figure) {
	p := f.panel("bargauge", true)
	zero := 0.0
	p.FieldConfig.Defaults.Min = &zero
	if f.unit == "short" { // Prometheus extrapolates to the range's ends, so that counts are not whole
		p.FieldConfig.Defaults.Decimals = new(int)
	}
	p.FieldConfig.Defaults.Color = map[string]any{"mode": "thresholds"}
	p.Options = map[string]any{
		"displayMode": "basic", "orientation": "horizontal", "showUnfilled": true, "valueMode": "color", "minVizHeight": 12, "minVizWidth": 8,
		"reduceOptions": reduce,
	}
	d.place(p, orElse(f.width, 8), 8)
}

func orElse(n, other int) int {
	if n == 0 {
		return other
	}
	return n
}

// of are the series of a metric that the viewer chose, and that match.
func of(metric string, matchers ...string) string {
	return metric + "{" + strings.Join(append([]string{`job=~"$job"`, `instance=~"$instance"`}, matchers...), ", ") + "}"
}

// chosen is the matcher of the policies that the viewer chose.
const chosen = `policy=~"$policy"`

func value(n float64) *float64 { return &n }

// atMost is green up to a limit and red from it on.
func atMost(limit float64) []step { return []step{{Color: "green"}, {"red", value(limit)}} }

// atMostTwo is orange between two limits.
func atMostTwo(first, second float64) []step {
	return []step{{Color: "green"}, {"orange", value(first)}, {"red", value(second)}}
}

// atLeastTwo is red below the first limit, and green from the second on.
func atLeastTwo(first, second float64) []step {
	return []step{{Color: "red"}, {"orange", value(first)}, {"green", value(second)}}
}
