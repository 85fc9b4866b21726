package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// outage is a line of a trace. start and end count from the beginning of the trace.
type outage struct {
	service, source string
	start, end      time.Duration
}

const (
	header = "service,source,start_minute,minutes"
	// maxMinutes of a trace: a century.
	maxMinutes = 100 * 366 * 24 * 60
)

// readTrace reads outages as CSV. An error names the line, what it holds and what it should.
func readTrace(file string, r io.Reader) ([]outage, error) {
	lines := csv.NewReader(r)
	lines.FieldsPerRecord = 4
	head, err := lines.Read()
	if err == nil {
		head[0] = strings.TrimPrefix(head[0], "\ufeff")
	}
	if found := strings.Join(head, ","); found != header {
		return nil, fmt.Errorf("%s:1: found %.60q, expected the header %s", file, found, header)
	}
	var outages []outage
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) && len(outages) == 0 {
			return nil, fmt.Errorf("%s: found no outage, expected at least one line below the header", file)
		}
		if errors.Is(err, io.EOF) {
			return outages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w, expected %s", file, err, header)
		}
		o, err := parseOutage(fields)
		if err != nil {
			line, _ := lines.FieldPos(0)
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
		outages = append(outages, o)
	}
}

func parseOutage(fields []string) (o outage, err error) {
	if fields[0] == "" {
		return o, errors.New("found no service, expected its name in the first field")
	}
	start, err := parseMinutes("start_minute", fields[2], 0)
	if err != nil {
		return o, err
	}
	length, err := parseMinutes("minutes", fields[3], time.Minute)
	return outage{fields[0], fields[1], start, start + length}, err
}

func parseMinutes(name, text string, least time.Duration) (time.Duration, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if d := time.Duration(n) * time.Minute; err == nil && n <= maxMinutes && d >= least {
		return d, nil
	}
	return 0, fmt.Errorf("found %s %.60q, expected a whole number from %d to %d", name, text, least/time.Minute, maxMinutes)
}

// byService returns the outages of each service in the order of time, those that overlap as one, and the services in
// alphabetical order.
func byService(outages []outage) [][]outage {
	sorted := slices.Clone(outages)
	slices.SortStableFunc(sorted, func(a, b outage) int {
		return cmp.Or(strings.Compare(a.service, b.service), cmp.Compare(a.start, b.start))
	})
	var all [][]outage
	for _, o := range sorted {
		if n := len(all); n == 0 || all[n-1][0].service != o.service {
			all = append(all, nil)
		}
		same := &all[len(all)-1]
		if n := len(*same); n > 0 && o.start <= (*same)[n-1].end {
			(*same)[n-1].end = max((*same)[n-1].end, o.end)
			continue
		}
		*same = append(*same, o)
	}
	return all
}
