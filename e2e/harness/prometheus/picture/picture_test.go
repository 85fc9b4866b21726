package picture_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness/prometheus/picture"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		value float64
		unit  string
		want  string
	}{
		{0.8234, "percentunit", "82.3%"}, {1, "percentunit", "100%"}, {0, "percentunit", "0%"}, {0.0123, "s", "12.3 ms"}, {0.000004, "s", "4 µs"},
		{172800, "s", "2 d"}, {90, "m", "1.5 h"}, {0.5, "m", "30 s"}, {1536, "bytes", "1.5 KiB"}, {0, "bytes", "0 B"}, {1234, "short", "1234"},
		{2.5, "ops", "2.5/s"}, {120, "cpm", "120/min"}, {math.NaN(), "s", "–"},
	} {
		if got := picture.Format(c.value, c.unit); got != c.want {
			t.Errorf("%v %s is %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}

// TestPictureShowsWhatWasAnswered: well-formed, with the words in it, values by their thresholds, markup of names escaped.
func TestPictureShowsWhatWasAnswered(t *testing.T) {
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	limits := []picture.Threshold{{Color: "green", From: math.Inf(-1)}, {Color: "red", From: 0.5}}
	one := func(name string, v float64) picture.Line {
		return picture.Line{Name: name, Points: []picture.Point{{At: at, Value: v}, {At: at.Add(time.Minute), Value: v}}}
	}
	svg := picture.SVG("a title", []picture.Panel{
		{Kind: "row", Title: "A row", W: 24, H: 1},
		{Kind: "stat", Title: "Good", Y: 1, W: 6, H: 4, Unit: "percentunit", Thresholds: limits, Lines: []picture.Line{one("x", 0.25)}},
		{Kind: "stat", Title: "Word", X: 6, Y: 1, W: 6, H: 4, Mappings: map[string]string{"1": "reached"}, Lines: []picture.Line{one("x", 1)}},
		{Kind: "stat", Title: "None", X: 12, Y: 1, W: 6, H: 4, None: "nothing there"},
		{Kind: "bargauge", Title: "Bars", Y: 5, W: 12, H: 8, Unit: "short", Thresholds: limits, Lines: []picture.Line{one("<b>", 7), one("other", 3)}},
		{Kind: "timeseries", Title: "Graph", X: 12, Y: 5, W: 12, H: 8, Unit: "s", Thresholds: limits, Stacked: true, Lines: []picture.Line{one("a", 1), one("b", 2)}},
	})
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is not well-formed: %v", err)
		}
	}
	for _, want := range []string{
		"<title>a title</title>", ">A row<", `fill="#73bf69" text-anchor="middle">25%<`, ">reached<", ">nothing there<", ">&lt;b&gt;<",
		`fill="#f2495c" text-anchor="end">7<`, ">3 s<" /* the two, stacked */, ">60 s<", "stroke-dasharray",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture has no %s", want)
		}
	}
}
