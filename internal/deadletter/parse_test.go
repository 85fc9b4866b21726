package deadletter_test

import (
	"cmp"
	"net/url"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestParseFilter: each field comes to its place, and what cannot be read is told by its field.
func TestParseFilter(t *testing.T) {
	const cause, id = "0123456789abcdef", "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	zone := time.FixedZone("BRT", -3*60*60)
	all := url.Values{"policy": {"p"}, "team": {"ti"}, "reason": {"TIMEOUT"}, "fingerprint": {cause}, "ids": {id},
		"context": {" operadora=Unimed "}, "q": {" guia "}, "since": {"2026-03-01"}, "until": {"2h"},
		"state": {"all"}, "sort": {"age"}}
	filter := journal.DeadLetterFilter{State: deadletter.AllStates, Sort: deadletter.ByAge, Policy: "p", Team: "ti", Reason: "TIMEOUT", Fingerprint: cause, IDs: id,
		Context: "operadora=Unimed", Query: "guia", Since: time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC), Until: now.Add(-2 * time.Hour)}

	f, err := deadletter.ParseFilter(all.Get, zone, now)
	testkit.Must(t, err)
	want(t, "the filter", f, filter)

	other := map[string]journal.Code{"1970-01-01": "invalid_period", strings.Repeat("x", 201): "invalid_query"} // than the field's own
	for field, bad := range map[string][]string{
		"since": {"yesterday", "0d", "12345d", "2026-02-30", "9999-01-01", "2026-03-01T8:00:00Z"}, "until": {"x", "1970-01-01"},
		"reason": {"timeout"}, "q": {strings.Repeat("x", 201)},
	} {
		for _, value := range bad {
			given := url.Values{}
			for name, values := range all {
				given[name] = values
			}
			given.Set(field, value)
			_, err := deadletter.ParseFilter(given.Get, zone, now)
			if r := journal.RefusalOf(err); r == nil || r.Code != cmp.Or(other[value], journal.Code("invalid_"+field)) || !strings.Contains(r.Message, field) {
				t.Errorf("%s=%q is answered with %v, want a refusal of that field", field, value, err)
			}
		}
	}
}

// TestParseInstant: everything that people write means one instant, to whichever door they come.
func TestParseInstant(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	zone := time.FixedZone("BRT", -3*60*60)
	for s, want := range map[string]string{
		"": "0001-01-01T00:00:00Z", "2026-03-01": "2026-03-01T03:00:00Z", "2026-03-01T08:30": "2026-03-01T11:30:00Z",
		"2026-03-01T08:30:15": "2026-03-01T11:30:15Z", "2026-03-01T08:30:15Z": "2026-03-01T08:30:15Z",
		"2026-03-01T08:30:15.25-03:00": "2026-03-01T11:30:15.25Z", "2026-03-01T08:30+01:00[Europe/Berlin]": "2026-03-01T07:30:00Z",
		"90m": "2026-03-04T10:30:00Z", "2h": "2026-03-04T10:00:00Z", "3d": "2026-03-01T12:00:00Z", "1w": "2026-02-25T12:00:00Z",
	} {
		got, ok := deadletter.ParseInstant(s, zone, now)
		if at := got.Format(time.RFC3339Nano); !ok || at != want {
			t.Errorf("%q is read as %s (%t), want %s", s, at, ok, want)
		}
	}
}
