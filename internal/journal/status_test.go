package journal_test

import (
	"testing"
	"time"

	"retry-worker/internal/journal"
)

func TestStatesAsPeopleOutsideReadThem(t *testing.T) {
	now := time.Date(2025, 1, 12, 10, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		stored journal.State
		next   time.Duration // from now on
		state  journal.State
		status journal.Status
	}{
		{journal.Scheduled, time.Second, journal.Scheduled, "pendente"},
		{journal.Scheduled, 0, journal.Due, "reenviando"},
		{journal.Scheduled, -time.Hour, journal.Due, "reenviando"},
		{journal.Reprocessing, time.Hour, journal.Reprocessing, "reenviando"},
		{journal.Reprocessing, -time.Hour, journal.Reprocessing, "reenviando"},
		{journal.Dead, 0, journal.Dead, "falha"},
		{journal.Recovered, 0, journal.Recovered, "entregue"},
		{journal.Discarded, 0, journal.Discarded, "descartada"},
		{journal.Superseded, 0, journal.Superseded, "falha"},
		{journal.Abandoned, 0, journal.Abandoned, "falha"},
	} {
		e := journal.Episode{State: test.stored, NextRetryTime: now.Add(test.next)}
		if state := e.StateAt(now); state != test.state || state.Status() != test.status {
			t.Errorf("%s with its retry in %s is %s, %s; want %s, %s", test.stored, test.next, state, state.Status(), test.state, test.status)
		}
	}
}
