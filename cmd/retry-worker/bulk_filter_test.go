package main

import (
	"maps"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func TestFilters(t *testing.T) {
	for given, want := range map[string]map[string]string{
		"all":                            {},
		"team=ti":                        {"team": "ti"},
		"q=a=b":                          {"q": "a=b"},
		"policy=p fingerprint=f":         {"policy": "p", "fingerprint": "f"},
		"reason=TIMEOUT":                 {"reason": "TIMEOUT"},
		"older-than=2h":                  {"until": "2026-03-02T10:00:00Z"},
		"younger-than=1d12h":             {"since": "2026-03-01T00:00:00Z"},
		"older-than=90m younger-than=1w": {"until": "2026-03-02T10:30:00Z", "since": "2026-02-23T12:00:00Z"},
		"since=2026-03-01":               {"since": "2026-03-01T00:00:00Z"},
		"since=2026-03-01T00:00:00-03:00 until=2026-03-01T12:00:00Z": {"since": "2026-03-01T03:00:00Z", "until": "2026-03-01T12:00:00Z"},
	} {
		if got, err := parseFilter(strings.Fields(given), noon); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", given, got, err, want)
		}
	}
}

func TestFiltersRefused(t *testing.T) {
	for given, want := range map[string]string{
		"ti":                             `--filter has "ti", expected all, or key=value with a key of policy, team, reason, fingerprint, ids, context, q, older-than, younger-than, since, until`,
		"tem=ti":                         `--filter has "tem", expected all, or key=value with a key of policy, team, reason, fingerprint, ids, context, q, older-than, younger-than, since, until; did you mean team?`,
		"Team=ti":                        `--filter has "Team", expected all, or key=value with a key of policy, team, reason, fingerprint, ids, context, q, older-than, younger-than, since, until; did you mean team?`,
		"older_than=x":                   `--filter has "older_than", expected all, or key=value with a key of policy, team, reason, fingerprint, ids, context, q, older-than, younger-than, since, until; did you mean older-than?`,
		"state=open":                     `--filter has "state", expected all, or key=value with a key of policy, team, reason, fingerprint, ids, context, q, older-than, younger-than, since, until`,
		"all=1":                          `--filter has "all", expected all, or key=value with a key of policy, team, reason, fingerprint, ids, context, q, older-than, younger-than, since, until; did you mean all?`,
		"al":                             `--filter has "al", expected all, or key=value with a key of policy, team, reason, fingerprint, ids, context, q, older-than, younger-than, since, until; did you mean all?`,
		"team":                           "--filter team has no value, expected --filter team=…",
		"team=":                          "--filter team has no value, expected --filter team=…",
		"team=a team=b":                  "--filter team is given twice, expected once: all filters must fit",
		"all team=ti":                    "--filter all chooses every open dead letter, expected no other --filter with it",
		"reason=LUCK":                    `--filter reason is "LUCK", expected a reason such as DUPLICATE_CLAIM or MAX_RETRIES`,
		"older-than=yesterday":           `--filter older-than is "yesterday", expected an age such as 90m, 2h, 3d or 1w`,
		"older-than=-2h":                 `--filter older-than is "-2h", expected an age such as 90m, 2h, 3d or 1w`,
		"older-than=2h until=2026-03-01": "--filter older-than and --filter until bound the same, expected one of them",
		"since=2026-3-1":                 `--filter since is "2026-3-1", expected a date such as 2026-03-01 (midnight UTC) or an instant such as 2026-03-01T08:00:00-03:00`,
		"older-than=3d younger-than=2h":  "the period is empty: it begins at 2026-03-02T10:00:00Z and ends at 2026-02-27T12:00:00Z, expected an end that is later",
	} {
		_, err := parseFilter(strings.Fields(given), noon)
		if err == nil || err.Error() != want {
			t.Errorf("%s: got\n%v\nwant\n%s", given, err, want)
		}
	}
}

func TestAges(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "2h": 2 * time.Hour, "3d": 72 * time.Hour, "1w": 168 * time.Hour, "1w1d1h30m": 193*time.Hour + 30*time.Minute, "1d0.5h": 24*time.Hour + 30*time.Minute,
		"0": 0, "0d": 0, "": 0, "d": 0, "3": 0, "-3d": 0, "3D": 0, "1d1w": 0, "1d1d": 0, "NaN": 0, "Infh": 0, "1e9h": 0, "99999d": 0, "999w": 0, "9999999999h": 0, "3 d": 0, "1d-2h": 0, "３d": 0,
	} {
		if got, known := parseAge(s); known != (want > 0) || known && got != want {
			t.Errorf("%q: got %v, %v, want %v", s, got, known, want)
		}
	}
}
