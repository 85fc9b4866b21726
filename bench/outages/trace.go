package main

import (
	"cmp"
	"encoding/csv"
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

const header = "service,source,start_minute,minutes"

// readTrace reads outages as CSV.
func readTrace(file string, r io.Reader) (outages []outage, err error) {
	lines := csv.NewReader(r)
	lines.FieldsPerRecord = 4
	all, err := lines.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w, expected %s", file, err, header)
	}
	if len(all) < 2 || strings.Join(all[0], ",") != header {
		return nil, fmt.Errorf("%s: expected the header %s, and one outage at least", file, header)
	}
	for n, fields := range all[1:] {
		const bits = 25 // half a century of minutes
		start, wrong := strconv.ParseUint(fields[2], 10, bits)
		length, err := strconv.ParseUint(fields[3], 10, bits)
		if wrong != nil || err != nil || length == 0 || fields[0] == "" {
			return nil, fmt.Errorf("%s:%d: found %q, expected %s, in whole minutes", file, n+2, fields, header)
		}
		begins := time.Duration(start) * time.Minute
		outages = append(outages, outage{fields[0], fields[1], begins, begins + time.Duration(length)*time.Minute})
	}
	return outages, nil
}

// byService returns the outages of each service, the services sorted by name. A service's outages are sorted by time,
// and those that overlap are joined.
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
