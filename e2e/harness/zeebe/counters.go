package zeebe

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// Counters are what the broker counted since its process began, at one instant: a restart begins anew.
type Counters struct {
	samples []sample
}

type sample struct {
	name   string
	labels map[string]string
	value  float64
}

// Jobs is how often an action happened to jobs of a type: "created", "activated", "completed", "failed",
// "timed out", "error thrown", "canceled", "retries updated", "recurred" say. An empty type is all of them.
func (c Counters) Jobs(jobType, action string) int {
	return c.sum("zeebe_job_events_total", map[string]string{"type": jobType, "action": action})
}

// Elements is how often an action happened to elements of a type: "PROCESS" or "SERVICE_TASK" say,
// "activated", "completed", "terminated". An empty type is all of them.
func (c Counters) Elements(elementType, action string) int {
	return c.sum("zeebe_element_instance_events_total", map[string]string{"type": elementType, "action": action})
}

// PendingIncidents is how many incidents wait for somebody now.
func (c Counters) PendingIncidents() int {
	return c.sum("zeebe_pending_incidents_total", nil)
}

// sum over the partitions, and over the labels that are left empty.
func (c Counters) sum(name string, labels map[string]string) int {
	total := 0.0
	for _, s := range c.samples {
		if s.name == name && s.has(labels) {
			total += s.value
		}
	}
	return int(total)
}

func (s sample) has(labels map[string]string) bool {
	for name, value := range labels {
		if value != "" && s.labels[name] != value {
			return false
		}
	}
	return true
}

// Counters asks the broker for its counters.
func (b *Broker) Counters(ctx context.Context) (Counters, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.ActuatorURL()+"/actuator/prometheus", nil)
	if err != nil {
		return Counters{}, fmt.Errorf("the broker's counters: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return Counters{}, fmt.Errorf("the broker's counters: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Counters{}, fmt.Errorf("the broker's counters: it answers %s", response.Status)
	}
	c, err := parseCounters(response.Body)
	if err != nil {
		return Counters{}, fmt.Errorf("the broker's counters: %w", err)
	}
	return c, nil
}

var (
	sampleLine = regexp.MustCompile(`^(zeebe_\w+)(?:\{(.*)\})? (\S+)`)
	label      = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
	unescaped  = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
)

// parseCounters reads the text format of Prometheus, Zeebe's own names only.
func parseCounters(text io.Reader) (Counters, error) {
	var c Counters
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := sampleLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return Counters{}, fmt.Errorf("the line %q has no number", lines.Text())
		}
		s := sample{m[1], map[string]string{}, value}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			s.labels[l[1]] = unescaped.Replace(l[2])
		}
		c.samples = append(c.samples, s)
	}
	return c, lines.Err()
}
