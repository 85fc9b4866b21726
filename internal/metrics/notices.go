package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"retry-worker/internal/decision"
	"retry-worker/internal/notify"
)

// notices are the figures of what teams are told.
type notices struct {
	tried  *prometheus.CounterVec
	oldest *prometheus.GaugeVec
}

func (m *Metrics) registerNotices() {
	m.notices.tried = m.counter("retry_worker_notices_total",
		"Tries to tell a team of its dead letters, by what became of them.", "team", "channel", "result")
	m.notices.oldest = m.gauges("retry_worker_notices_oldest_seconds",
		"How long the oldest message to a team waits to be sent; the same in every replica, absent where none waits.", "team",
		"channel")
}

// StartNotices creates the series of a team and a way that it is told by.
func (m *Metrics) StartNotices(team decision.Team, c notify.Channel) {
	for _, r := range notify.Results() {
		m.notices.tried.WithLabelValues(string(team), string(c), string(r))
	}
}

// NoticeTried counts a try to tell a team.
func (m *Metrics) NoticeTried(team decision.Team, c notify.Channel, r notify.Result) {
	m.notices.tried.WithLabelValues(string(team), string(c), string(r)).Inc()
}

// SetNotices takes over which messages to teams wait at now.
func (m *Metrics) SetNotices(waiting []notify.Waiting, now time.Time) {
	m.notices.oldest.Reset()
	for i := len(waiting) - 1; i >= 0; i-- { // the oldest comes first, and is to stay
		w := &waiting[i]
		m.notices.oldest.WithLabelValues(string(w.Team), string(w.Channel)).Set(max(now.Sub(w.Since), 0).Seconds())
	}
}
