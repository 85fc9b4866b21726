package zeebe

import (
	"strings"
	"testing"
)

func TestCountersAreReadFromText(t *testing.T) {
	c, err := parseCounters(strings.NewReader(`# HELP zeebe_job_events_total Number of job events
# TYPE zeebe_job_events_total counter
zeebe_job_events_total{action="completed",partition="1",type="a",} 3.0
zeebe_job_events_total{action="completed",partition="2",type="a"} 4
zeebe_job_events_total{action="completed",partition="1",type="say \"b, c\\d\"",} 1.2E3
zeebe_job_events_total{action="failed",partition="1",type="a",} 1.0
zeebe_element_instance_events_total{action="activated",organizationId="null",partition="1",type="PROCESS",} 9.0
zeebe_pending_incidents_total{partition="1",} 2.0
jvm_threads_live_threads 80.0
zeebe_health 1.0
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		what      string
		got, want int
	}{
		{"one type, both partitions", c.Jobs("a", "completed"), 7},
		{"quoted", c.Jobs(`say "b, c\d"`, "completed"), 1200},
		{"all types", c.Jobs("", "completed"), 1207},
		{"all actions", c.Jobs("a", ""), 8},
		{"none", c.Jobs("z", "completed"), 0},
		{"elements", c.Elements("PROCESS", "activated"), 9},
		{"incidents", c.PendingIncidents(), 2},
	} {
		if r.got != r.want {
			t.Errorf("%s: %d, expected %d", r.what, r.got, r.want)
		}
	}
	if _, err := parseCounters(strings.NewReader("zeebe_health many\n")); err == nil {
		t.Error("a line without a number was read")
	}
}
