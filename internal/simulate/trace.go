// Package simulate plays outages against a policy in virtual time, with the code that decides, holds and releases.
package simulate

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Outage is a line of a trace.
type Outage struct {
	Service, Source string
	// Start and End count from the beginning of the trace.
	Start, End time.Duration
}

const (
	header = "service,source,start_minute,minutes"
	// maxMinutes of a trace: a century.
	maxMinutes = 100 * 366 * 24 * 60
	maxOutages = 1_000_000
)

// Read reads a trace; file stands in its errors, which say what a line holds and what it should.
func Read(file string, r io.Reader) ([]Outage, error) {
	lines := bufio.NewScanner(r)
	var outages []Outage
	number := 0
	wrong := func(found, expected string) error {
		return fmt.Errorf("%s:%d: found %s, expected %s", file, number, found, expected)
	}
	for lines.Scan() {
		number++
		line := strings.TrimSuffix(lines.Text(), "\r")
		switch {
		case number == 1 && strings.TrimPrefix(line, "\ufeff") != header:
			return nil, wrong(quote(line), "the header "+header)
		case number == 1 || line == "":
			continue
		case len(outages) == maxOutages:
			return nil, wrong("one outage more", fmt.Sprintf("at most %d", maxOutages))
		}
		o, found, expected := readLine(line)
		if expected != "" {
			return nil, wrong(found, expected)
		}
		outages = append(outages, o)
	}
	if err := lines.Err(); err != nil {
		number++
		return nil, wrong(err.Error(), "lines of text")
	}
	if len(outages) == 0 {
		number++
		return nil, wrong("the end of the file", "the header "+header+" and at least one outage")
	}
	return outages, nil
}

func readLine(line string) (o Outage, found, expected string) {
	fields := strings.Split(line, ",")
	if len(fields) != 4 {
		return o, fmt.Sprintf("%d fields (%s)", len(fields), quote(line)), "4: " + header
	}
	start, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || start < 0 || start > maxMinutes {
		return o, "start_minute " + quote(fields[2]), fmt.Sprintf("a whole number from 0 to %d", maxMinutes)
	}
	minutes, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil || minutes < 1 || minutes > maxMinutes {
		return o, "minutes " + quote(fields[3]), fmt.Sprintf("a whole number from 1 to %d", maxMinutes)
	}
	if fields[0] == "" {
		return o, "no service", "its name in the first field"
	}
	return Outage{fields[0], fields[1], time.Duration(start) * time.Minute, time.Duration(start+minutes) * time.Minute},
		"", ""
}

func quote(s string) string {
	const most = 60
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strconv.Quote(s)
}

// byService returns the outages of each service in the order of time, those that overlap as one, and the services in
// alphabetical order.
func byService(outages []Outage) [][]Outage {
	sorted := slices.Clone(outages)
	slices.SortStableFunc(sorted, func(a, b Outage) int {
		return cmp.Or(strings.Compare(a.Service, b.Service), cmp.Compare(a.Start, b.Start))
	})
	var all [][]Outage
	for _, o := range sorted {
		if n := len(all); n == 0 || all[n-1][0].Service != o.Service {
			all = append(all, nil)
		}
		mine := &all[len(all)-1]
		if n := len(*mine); n > 0 && o.Start <= (*mine)[n-1].End {
			(*mine)[n-1].End = max((*mine)[n-1].End, o.End)
			continue
		}
		*mine = append(*mine, o)
	}
	return all
}
