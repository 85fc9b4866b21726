package zeebe

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Counters are what the broker counted since its process began, at one instant: a restart begins anew.
type Counters map[string]*dto.MetricFamily

// Jobs is how often an action happened to jobs of a type: "created", "activated", "completed", "failed", "timed out",
// "error thrown", "canceled", "retries updated", "recurred" say. An empty type is all of them.
func (c Counters) Jobs(jobType, action string) int {
	return c.sum("zeebe_job_events_total", map[string]string{"type": jobType, "action": action})
}

// Elements is how often an action happened to elements of a type: "PROCESS" or "SERVICE_TASK" say, "activated", "completed",
// "terminated". An empty type is all of them.
func (c Counters) Elements(elementType, action string) int {
	return c.sum("zeebe_element_instance_events_total", map[string]string{"type": elementType, "action": action})
}

// PendingIncidents is how many incidents wait for somebody now.
func (c Counters) PendingIncidents() int { return c.sum("zeebe_pending_incidents_total", nil) }

// sum over the partitions, and over the labels that are left empty.
func (c Counters) sum(name string, labels map[string]string) int {
	total := 0.0
	for _, m := range c[name].GetMetric() {
		differs := func(l *dto.LabelPair) bool { want := labels[l.GetName()]; return want != "" && want != l.GetValue() }
		if !slices.ContainsFunc(m.GetLabel(), differs) {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return int(total)
}

// Counters asks the broker for its counters.
func (b *Broker) Counters(ctx context.Context) (Counters, error) {
	text, err := ask(ctx, http.MethodGet, b.ActuatorURL()+"/actuator/prometheus", "")
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the broker's counters: %w", err)
	}
	return families, nil
}
