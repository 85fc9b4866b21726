package compare

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
)

//go:embed page.html
var page string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"percent": percent, "place": place, "wide": wide,
}).Parse(page))

// Title returns the method as people are told of it.
func (m Method) Title() string {
	switch m {
	case Matched:
		return "what came of the like"
	case Propensity:
		return "weighed by chance"
	default:
		return "both, doubly robust"
	}
}

// String returns the interval in hundredths: 41.2 [39.0, 43.3].
func (i Interval) String() string {
	return fmt.Sprintf("%.1f [%.1f, %.1f]", 100*i.Value, 100*i.Low, 100*i.High)
}

// Words are the intervals of A, of B and of B less A.
func (e *Estimate) Words() []string {
	if e.Told == 0 {
		return []string{"cannot be told", "", ""}
	}
	return []string{e.A.String(), e.B.String(), e.Difference.String()}
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// The picture's measures in pixels.
const (
	plotLeft  = 220.0
	plotWidth = 560.0
)

// place of a share on the picture's axis.
func place(x float64) float64 { return math.Round(plotLeft + plotWidth*min(max(x, 0), 1)) }

// wide is an interval's width on the axis.
func wide(i Interval) float64 { return max(place(i.High)-place(i.Low), 2) }

// Page shows a result: of whose failures, since when, and by which two catalogues.
type Page struct {
	Policy, Since, A, B string
	Result
}

// Write writes the page as HTML that needs nothing else, with a picture of the intervals; legible in light and dark.
func (p *Page) Write(w io.Writer) error { return pageTemplate.Execute(w, p) }

// Ticks of the axis.
func (Page) Ticks() []float64 { return []float64{0, 0.25, 0.5, 0.75, 1} }

// Hundredths is a share's place in words.
func (Page) Hundredths(x float64) string { return fmt.Sprintf("%g", 100*x) }

// Row is where an estimate begins, Below what lies so far below that.
func (Page) Row(i int) int { return 60 * i }

// Below returns y and more.
func (Page) Below(y, more int) int { return y + more }

// Rows are what the policies decide, each with its name.
func (r *Result) Rows() [][2]string {
	return [][2]string{
		{"failures", fmt.Sprint(r.Failures)},
		{"left out", fmt.Sprintf("%d: what the records hold does not suffice", r.Omitted)},
		{"decided otherwise", fmt.Sprintf("%d (%s)", r.Otherwise, percent(share(float64(r.Otherwise), int(r.Failures))))},
		{"retried by A alone", fmt.Sprintf("%d; of those that B gives up, %d recovered by the retry that was made", r.RetriedByA, r.MissedByB)},
		{"retried by B alone", fmt.Sprintf("%d; of those that A gives up, %d recovered by the retry that was made", r.RetriedByB, r.MissedByA)},
		{"retried earlier by B", fmt.Sprintf("%d, by %.0f min at the median", r.Earlier, r.EarlierBy)},
		{"retried later by B", fmt.Sprintf("%d, by %.0f min at the median", r.Later, r.LaterBy)},
		{"given to another team", fmt.Sprint(r.OtherTeam)},
		{"retries", fmt.Sprintf("%d by A, %d by B", r.RetriesA, r.RetriesB)},
	}
}
