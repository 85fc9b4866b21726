package main

import (
	"fmt"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/kpi"
)

// business is what those who answer for the claims look at.
func business() *dashboard {
	d := newDashboard("retry-worker: business", "retry-worker-business",
		"Are failed submissions saved by retries, what fails and why, and who must act: RN-BIL-005 §6 and RN-BIL-004 §6.")
	d.variables = append(d.variables, labelValues("policy", "Policy", `error_classification_distribution{job=~"$job"}`, "policy"))
	d.targets()
	d.failures()
	d.recovery()
	d.backoff()
	d.deadLetters()
	d.waiting()
	return d
}

func (d *dashboard) targets() {
	d.row("Targets (RN-BIL-005 §6.1, RN-BIL-004 §6.1)")
	d.stat(figure{title: "Success rate, 24 h", unit: "percentunit", queries: []query{figureOf("success_rate")},
		description: "Recovered with retries ÷ (recovered + exhausted with retries). Targets: 80 % (RN-BIL-005), 85 % (RN-BIL-004). Empty while nothing ended.",
		steps:       atLeastTwo(target005("success_rate"), target004("success_rate"))})
	d.stat(figure{title: "Mean time to success, 24 h", unit: "m", queries: []query{figureOf("time_to_success_mean")},
		description: "First failure to recovery, mean. Target: at most 2 hours (RN-BIL-005).", steps: atMost(target005("time_to_success_mean"))})
	d.stat(figure{title: "Median time to success, 24 h", unit: "m", queries: []query{figureOf("time_to_success_median")},
		description: "First failure to recovery, median. Target: at most 60 minutes (RN-BIL-004).", steps: atMost(target004("time_to_success_median"))})
	d.stat(figure{title: "Retries to success, 24 h", unit: "none", queries: []query{figureOf("retries_to_success")},
		description: "Mean retries of what recovered. Target: at most 1.2 (RN-BIL-004).", steps: atMost(target004("retries_to_success"))})
	d.stat(figure{title: "Permanent errors, 7 days", unit: "percentunit", queries: []query{figureOf("permanent_rate")},
		description: "Permanent errors ÷ all decisions. Target: below 10 %; alerts above 10 % (RN-BIL-004) and 15 % (RN-BIL-005).",
		steps:       atMostTwo(target005("permanent_rate"), alert005("permanent_rate"))})
	d.stat(figure{title: "Exhausted, 7 days", unit: "percentunit", queries: []query{figureOf("exhausted_rate")},
		description: "Reached the limit of retries ÷ all that was closed. Targets: at most 3 % (RN-BIL-004), below 5 % (RN-BIL-005).",
		steps:       atMostTwo(target004("exhausted_rate"), target005("exhausted_rate"))})
	d.stat(figure{title: "Open dead letters", unit: "short", steps: atMost(deadletter.AlertAbove),
		description: "Failures that are not retried any more and wait for a person. Alert above 100 (TRD-0003).",
		queries:     []query{{"sum(max by (policy) (" + of("retry_worker_dead_letters", `state="open"`, chosen) + "))", "open"}}})
	d.stat(figure{title: "Oldest open dead letter", unit: "s", steps: atMost(2 * 24 * 3600), none: "none",
		description: "How long the oldest has waited for a person. Alert above 2 days.",
		queries:     []query{{"max(max by (policy) (" + of("retry_worker_dead_letters_oldest_seconds", chosen) + "))", "oldest"}}})
}

// perMinute is how often something happened, over time.
func perMinute(by, series string) string { return "60 * " + perSecond(by, series) }

// within is how often something happened in the time range that is shown.
func within(by, series string) string {
	return "sum by (" + by + ") (increase(" + series + "[$__range]))"
}

func (d *dashboard) failures() {
	d.row("What fails, and why")
	d.graph(figure{title: "Failures by class", unit: "cpm", stacked: true,
		description: "Decisions a minute by the class of their error. UNKNOWN ones are retried to be on the safe side: many of them want a rule.",
		queries:     []query{{perMinute("classification", of("error_classification_distribution", chosen)), "{{classification}}"}}})
	d.graph(figure{title: "Retries scheduled by class", unit: "cpm", stacked: true,
		description: "Retries scheduled a minute, by the class of the error.",
		queries:     []query{{perMinute("classification", of("retry_scheduled_total", chosen)), "{{classification}}"}}})
	d.graph(figure{title: "Retries scheduled by policy", unit: "cpm",
		description: "The same by policy, as RN-BIL-004 counts them.",
		queries:     []query{{perMinute("policy", of("submission_retry_total", chosen)), "{{policy}}"}}})
	d.bars(figure{title: "Permanent errors by reason", unit: "short",
		description: "Permanent errors in the time shown, by the reason that the catalogue gives.",
		queries:     []query{{within("reason", of("permanent_errors_total", chosen)) + " > 0", "{{reason}}"}}})
	d.bars(figure{title: "Permanent errors by team", unit: "short",
		description: "The same by the team that must act.",
		queries:     []query{{within("team", of("permanent_errors_total", chosen)) + " > 0", "{{team}}"}}})
	d.graph(figure{title: "Given up: limit and permanent", unit: "cpm",
		description: "What is not retried any more, a minute: the limit of retries (all together as RN-BIL-004 counts them, too), and permanent errors.",
		queries: []query{
			{perMinute("policy", of("max_retries_exceeded_total", chosen)), "{{policy}}: limit"},
			{perMinute("policy", of("permanent_errors_total", chosen)), "{{policy}}: permanent"},
			{"60 * sum(rate(" + of("submission_retry_max_exceeded", chosen) + "[$__rate_interval]))", "all: limit (RN-BIL-004)"},
		}})
	d.bars(figure{title: "Inputs refused by reason", unit: "short", width: 12,
		description: "Jobs whose input makes no sense, in the time shown. Each is an incident that waits for somebody to correct a variable.",
		queries:     []query{{within("reason", of("retry_worker_rejected_inputs_total")) + " > 0", "{{reason}}"}}})
	d.graph(figure{title: "Permanent and exhausted share against their limits", unit: "percentunit", width: 12,
		description: "The shares of 7 days. Permanent: alert above 10 % and 15 %; exhausted: above 3 % and 5 %. The lines are those of the exhausted.",
		steps:       atMostTwo(target004("exhausted_rate"), alert005("exhausted_rate")),
		queries:     []query{{figureOf("permanent_rate").expr, "permanent {{policy}}"}, {figureOf("exhausted_rate").expr, "exhausted {{policy}}"}}})
}

func (d *dashboard) recovery() {
	d.row("Recovery")
	d.graph(figure{title: "Success rate against the targets", unit: "percentunit", max: new(1.0),
		description: "retry_success_rate, of the last 24 hours at every moment. The lines are the targets, 80 % (RN-BIL-005) and 85 % (RN-BIL-004).",
		steps:       atLeastTwo(target005("success_rate"), target004("success_rate")),
		queries:     []query{{"max by (policy) (" + of("retry_success_rate", chosen) + ")", "{{policy}}"}}})
	recovered := func(suffix string) string { return of("retry_worker_recovery_seconds"+suffix, chosen) }
	d.bars(figure{title: "Time to success", unit: "s",
		description: "Median, 90th percentile and mean of what recovered with retries in the time shown. Targets: median 60 min, mean 2 h.",
		queries: []query{
			{"histogram_quantile(0.5, " + within("le", recovered("_bucket")) + ")", "median"},
			{"histogram_quantile(0.9, " + within("le", recovered("_bucket")) + ")", "90 %"},
			{"sum(increase(" + recovered("_sum") + "[$__range])) / sum(increase(" + recovered("_count") + "[$__range]))", "mean"},
		},
		steps: atMostTwo(60*target004("time_to_success_median"), 60*target005("time_to_success_mean"))})
	d.bars(figure{title: "Retries until success", unit: "short",
		description: "How many, of those that recovered in the time shown, needed at most so many retries.",
		queries:     []query{{within("le", of("retry_worker_recovery_attempts_bucket", chosen)), "≤ {{le}}"}}})
}

// rung is a step of tiss-submission's ladder: 5 min × 2^n ± 20 %, rounded and held in its bounds (R5). R19's buckets lie at
// its ends.
type rung struct {
	name string
	upTo int // minutes
}

var ladder = []rung{
	{"1st retry: 5 to 6 min", 6}, {"2nd: 8 to 12 min", 12}, {"3rd: 16 to 24 min", 24},
	{"4th: 32 to 48 min", 48}, {"5th: 64 to 96 min", 96}, {"forced ones, beyond", 240},
}

// upTo is how many retries of tiss-submission wait that long at most, in the time shown. From Prometheus 3 on a bound is
// always written with a point.
func upTo(minutes int) string {
	return fmt.Sprintf(`sum(increase(%s[$__range]))`,
		of("backoff_duration_minutes_bucket", fmt.Sprintf(`le=~"%d(\\.0)?"`, minutes), `policy="tiss-submission"`))
}

func (d *dashboard) backoff() {
	d.row("Backoff")
	var rungs []query
	below := ""
	for _, r := range ladder {
		rungs = append(rungs, query{upTo(r.upTo) + below, r.name})
		below = " - " + upTo(r.upTo)
	}
	d.bars(figure{title: "Backoff against the ladder of tiss-submission", unit: "short", width: 12, queries: rungs,
		description: "Retries scheduled in the time shown, by the rung of the ladder they stand on (R5). It falls from rung to rung while retries help."})
	d.stat(figure{title: "At maximum, 7 days", unit: "percentunit", width: 4, height: 8, queries: []query{figureOf("at_maximum_rate")},
		description: "Retries whose backoff reached the policy's maximum ÷ retries scheduled. Alert above 5 % (RN-BIL-004).", steps: atMost(alert004("at_maximum_rate"))})
	d.stat(figure{title: "Mean backoff, 24 h", unit: "m", width: 4, height: 8, queries: []query{figureOf("backoff_mean")},
		description: "Mean of the retries scheduled. Alert above 30 minutes (RN-BIL-004).", steps: atMost(alert004("backoff_mean"))})
	d.stat(figure{title: "Jitter deviation, 7 days", unit: "percentunit", width: 4, height: 8, queries: []query{figureOf("jitter_deviation")}, none: "< 1,000 draws",
		description: "Largest difference of eight equal bins from their share, from 1,000 draws on. Alert above 30 % (RN-BIL-004).", steps: atMost(alert004("jitter_deviation"))})
	d.graph(figure{title: "Mean backoff", unit: "m",
		description: "Of the retries scheduled at that moment, by policy. The line is the alert's 30 minutes (RN-BIL-004).",
		steps:       atMost(alert004("backoff_mean")),
		queries: []query{{fmt.Sprintf("sum by (policy) (rate(%s[$__rate_interval])) / (sum by (policy) (rate(%s[$__rate_interval])) > 0)",
			of("submission_retry_backoff_minutes_sum", chosen), of("submission_retry_backoff_minutes_count", chosen)), "{{policy}}"}}})
	d.bars(figure{title: "Backoff, cumulated", unit: "short",
		description: "Retries scheduled in the time shown that wait at most so many minutes.",
		queries:     []query{{within("le", of("backoff_duration_minutes_bucket", chosen)), "≤ {{le}} min"}}})
	d.bars(figure{title: "Jitter, cumulated", unit: "short",
		description: "Draws in the time shown up to that deviation from the nominal backoff: eight steps of the same height where the generator is even.",
		queries:     []query{{within("le", of("retry_worker_jitter_ratio_bucket", chosen)), "≤ {{le}}"}}})
}

func (d *dashboard) deadLetters() {
	d.row("Dead letters")
	d.graph(figure{title: "Dead letters by state", unit: "short",
		description: "What became of everything that was given up: open ones wait for a person.",
		queries:     []query{{"sum by (state) (max by (policy, state) (" + of("retry_worker_dead_letters", chosen) + "))", "{{state}}"}}})
	open := "max by (policy, team, reason) (" + of("retry_worker_dead_letters_open", chosen) + ")"
	d.graph(figure{title: "Open dead letters by team", unit: "short", stacked: true,
		description: "Who must act.", queries: []query{{"sum by (team) (" + open + ")", "{{team}}"}}})
	d.bars(figure{title: "Open dead letters by reason", unit: "short",
		description: "Why they are there, at this moment.", queries: []query{{"sum by (reason) (" + open + ") > 0", "{{reason}}"}}})
}

func (d *dashboard) waiting() {
	d.row("Claims that wait for a portal")
	d.graph(figure{title: "Claims held", unit: "short", stacked: true,
		description: "Claims that wait because their destination is down. They lose no retry.",
		queries:     []query{{"max by (destination) (" + of("retry_worker_held") + ")", "{{destination}}"}}})
	d.graph(figure{title: "Nearest deadline of those", unit: "s",
		description: "Time until the first of them must be submitted; no line where none has a deadline. Alert below 2 hours.",
		steps:       []object{from(nil, "red"), from(7200, "green")},
		queries:     []query{{"max by (destination) (" + of("retry_worker_held_deadline_seconds") + ")", "{{destination}}"}}})
	d.bars(figure{title: "Held, cumulated", unit: "short",
		description: "Claims let through in the time shown that were held for at most so many seconds.",
		queries:     []query{{within("le", of("retry_worker_held_seconds_bucket")), "≤ {{le}} s"}}})
}

// goal is what a rule wants of a figure, or raises an alert at (R19).
func goal(name string, rule decision.BusinessRule, kind string) float64 {
	for _, k := range kpi.All(nil, []string{decision.DefaultPolicy}, time.Time{}) {
		for _, g := range k.Goals {
			if k.Name == name && g.Rule == rule && g.Kind == kind {
				return g.Limit
			}
		}
	}
	panic(fmt.Sprintf("%s has no %s of %s", name, kind, rule)) // a slip in this package, which its test finds
}

func target005(name string) float64 { return goal(name, decision.RNBIL005, kpi.Target) }
func target004(name string) float64 { return goal(name, decision.RNBIL004, kpi.Target) }
func alert005(name string) float64  { return goal(name, decision.RNBIL005, kpi.Alert) }
func alert004(name string) float64  { return goal(name, decision.RNBIL004, kpi.Alert) }

// figureOf reads a figure from the database, which is the same in every replica.
func figureOf(name string) query {
	return query{fmt.Sprintf("max by (policy) (%s)", of("retry_worker_kpi", fmt.Sprintf(`kpi=%q`, name), chosen)), "{{policy}}"}
}
