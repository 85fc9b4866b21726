package main

import "fmt"

// operations is what those who run the service look at.
func operations() *dashboard {
	d := newDashboard("retry-worker: operations", "retry-worker-operations",
		"Is the service well: its jobs, how long they take, the engine, the journal, the outbox, and its own processes.")
	d.variables = append(d.variables, labelValues("engine", "Engine's job", "zeebe_job_events_total", "job"))
	d.health()
	d.jobs()
	d.journal()
	d.engine()
	d.destinations()
	d.people()
	d.processes()
	return d
}

// yesNo are the words for a figure that is 1 or 0.
func yesNo(yes, no string) []any {
	word := func(text, color string) object { return object{"text": text, "color": color} }
	return []any{object{"type": "value", "options": object{"1": word(yes, "green"), "0": word(no, "red")}}}
}

func (d *dashboard) health() {
	d.row("Health")
	least := func(metric string) []query { return []query{{"min(" + of(metric) + ")", ""}} }
	broken := []object{from(nil, "red"), from(1, "green")}
	d.stat(figure{title: "Replicas", unit: "none", steps: broken, width: 4, none: "none",
		description: "Replicas that Prometheus sees.", queries: []query{{"count(" + of("retry_worker_build_info") + ")", "replicas"}}})
	d.stat(figure{title: "Engine", unit: "none", steps: broken, width: 4, mappings: yesNo("reached by all", "not reached"),
		description: "Whether every replica reaches the Zeebe gateway.", queries: least("retry_worker_engine_up")})
	d.stat(figure{title: "Journal", unit: "none", steps: broken, width: 4, mappings: yesNo("written by all", "refuses"),
		description: "Whether every replica can write the database. One that cannot takes no jobs.", queries: least("retry_worker_journal_up")})
	d.stat(figure{title: "Policies file", unit: "none", width: 4, mappings: yesNo("refused", "in force"),
		steps:       atMost(1),
		description: "Whether a change of the policies file was refused: the catalogue before it stays in force.",
		queries:     []query{{"max(" + of("retry_worker_catalogue_rejected") + ")", ""}}})
	d.stat(figure{title: "Version", unit: "none", width: 4, names: true,
		description: "How many replicas run which version: two while an upgrade is under way.",
		queries:     []query{{"count by (version) (" + of("retry_worker_build_info") + ")", "{{version}}"}}})
	d.stat(figure{title: "Catalogue", unit: "none", width: 4, names: true,
		description: "How many replicas decide by which catalogue: one only, but for the moment of a change.",
		queries:     []query{{"count by (version) (" + of("retry_worker_catalogue_info") + ")", "{{version}}"}}})
}

// perSecond is how often something happens, over time.
func perSecond(by, series string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s[$__rate_interval]))", by, series)
}

// quantile of a histogram, over time.
func quantile(q, by, series string) string {
	return "histogram_quantile(" + q + ", " + perSecond(by, series) + ")"
}

func (d *dashboard) jobs() {
	d.row("Jobs")
	d.graph(figure{title: "Jobs by what became of them", unit: "ops", stacked: true,
		description: "Jobs a second: completed, BPMN errors, incidents (failed), answered elsewhere (superseded), handed back (released), unconfirmed.",
		queries:     []query{{perSecond("action", of("retry_worker_jobs_total")), "{{action}}"}}})
	d.graph(figure{title: "Jobs by type", unit: "ops", stacked: true,
		description: "Jobs answered a second, by job type.", queries: []query{{perSecond("job_type", of("retry_worker_jobs_total")), "{{job_type}}"}}})
	d.graph(figure{title: "In flight", unit: "short",
		description: "Jobs activated and not yet answered, by replica. At MAX_JOBS_ACTIVE the worker is the bottleneck.",
		queries:     []query{{"sum by (instance) (" + of("retry_worker_jobs_in_flight") + ")", "{{instance}}"}}})
	analysis := of("retry_analysis_duration_seconds_bucket")
	d.graph(figure{title: "Time of one analysis", unit: "s", steps: atMost(alert005("processing_time_p99")),
		description: "Median and 99th percentile by policy. Alert above 1 second (RN-BIL-005 §6.2).",
		queries:     []query{{quantile("0.5", "policy, le", analysis), "p50 {{policy}}"}, {quantile("0.99", "policy, le", analysis), "p99 {{policy}}"}}})
	d.graph(figure{title: "Decisions by replica", unit: "ops",
		description: "Fresh decisions a second, by replica.", queries: []query{{perSecond("instance", of("error_classification_distribution")), "{{instance}}"}}})
	d.graph(figure{title: "Decisions given again", unit: "ops",
		description: "Recorded decisions that a job got again: the engine delivers at least once. Many mean that answers get lost.",
		queries:     []query{{perSecond("instance", of("retry_worker_decisions_replayed_total")), "{{instance}}"}}})
	d.graph(figure{title: "Inputs refused", unit: "ops",
		description: "Jobs whose input makes no sense, each an incident, by reason.",
		queries:     []query{{perSecond("reason", of("retry_worker_rejected_inputs_total")), "{{reason}}"}}})
	d.graph(figure{title: "Panics and oversized jobs", unit: "ops",
		description: "Jobs that broke their handler (a defect), and jobs too large to be read.",
		queries: []query{
			{perSecond("job_type", of("retry_worker_panics_total")), "panics {{job_type}}"},
			{perSecond("job_type", of("retry_worker_oversized_total")), "oversized {{job_type}}"},
		}})
}

func (d *dashboard) journal() {
	d.row("Journal and outbox")
	write := of("retry_worker_journal_write_seconds_bucket")
	d.graph(figure{title: "Time of one commit", unit: "s", steps: atMost(0.5),
		description: "Median and 99th percentile; many decisions share one. Slow commits are a slow disk, or a database under load.",
		queries:     []query{{quantile("0.5", "le", write), "p50"}, {quantile("0.99", "le", write), "p99"}}})
	d.graph(figure{title: "Commits", unit: "ops",
		description: "Transactions of the journal a second, by replica.",
		queries:     []query{{perSecond("instance", of("retry_worker_journal_write_seconds_count")), "{{instance}}"}}})
	d.graph(figure{title: "Outbox", unit: "short", steps: atMost(100),
		description: "Events, people's decisions and notices that are recorded and not yet delivered, all replicas together. Alert above 100 and growing.",
		queries:     []query{{"max by (job) (" + of("retry_worker_outbox_pending") + ")", "{{job}}"}}})
	d.graph(figure{title: "Events published", unit: "ops",
		description: "Events that NATS took a second, by replica: one at a time publishes.",
		queries:     []query{{perSecond("instance", of("retry_worker_outbox_published_total")), "{{instance}}"}}})
	d.graph(figure{title: "Journal and engine, by replica", unit: "none", max: new(1.0), width: 16,
		description: "1 while a replica can write the journal, and while it reaches the engine.",
		queries: []query{
			{"min by (instance) (" + of("retry_worker_journal_up") + ")", "journal {{instance}}"},
			{"min by (instance) (" + of("retry_worker_engine_up") + ")", "engine {{instance}}"},
		}})
}

// ofEngine are the series of the broker's own metrics.
func ofEngine(metric, matchers string) string { return metric + `{job=~"$engine"` + matchers + "}" }

func (d *dashboard) engine() {
	d.row("Engine (the broker's own figures)")
	ours := `, type=~"analyze-retry|retry-submission-backoff|record-retry-outcome|retry-review"`
	d.graph(figure{title: "Jobs in the engine", unit: "ops",
		description: "What happens a second to the worker's job types in the broker. Created above completed: jobs pile up. Timed out: answers come too late.",
		queries:     []query{{perSecond("action", ofEngine("zeebe_job_events_total", ours)), "{{action}}"}}})
	d.graph(figure{title: "Jobs created and answered", unit: "ops",
		description: "By job type: what the broker makes, against what the worker answers.",
		queries: []query{
			{perSecond("type", ofEngine("zeebe_job_events_total", `, action="created"`+ours)), "created {{type}}"},
			{perSecond("job_type", of("retry_worker_jobs_total")), "answered {{job_type}}"},
		}})
	d.graph(figure{title: "Incidents waiting", unit: "short",
		description: "Incidents in the broker, of all processes. A refused input is one.",
		queries:     []query{{"sum(" + ofEngine("zeebe_pending_incidents_total", "") + ")", "incidents"}}})
}

func (d *dashboard) destinations() {
	d.row("Destinations")
	d.graph(figure{title: "Destinations that are not up", unit: "short", stacked: true,
		description: "Where claims are held, by state: down, a claim sent ahead (testing), or let through at a pace (ramping). Alert when down for an hour.",
		queries:     []query{{"max by (destination, state) (" + of("retry_worker_destination_state", `state!="up"`) + ") > 0", "{{destination}} {{state}}"}}})
	d.graph(figure{title: "Claims let through", unit: "cpm", stacked: true,
		description: "A minute, by why: the destination is up (pass), to test it (canary), or after an outage (ramp).",
		queries:     []query{{perMinute("destination, kind", of("retry_worker_released_total")), "{{destination}} {{kind}}"}}})
	d.graph(figure{title: "Wasted attempts", unit: "cpm",
		description: "Submissions a minute that failed because their destination was not up: canaries, and the ends of ramps that failed.",
		queries:     []query{{perMinute("destination", of("retry_worker_wasted_attempts_total")), "{{destination}}"}}})
}

func (d *dashboard) people() {
	d.row("Teams and bulk runs")
	d.graph(figure{title: "Messages to teams", unit: "cpm", width: 6,
		description: "Tries a minute to tell a team of its dead letters, by what became of them. Failed ones are tried again.",
		queries:     []query{{perMinute("channel, result", of("retry_worker_notices_total")), "{{channel}} {{result}}"}}})
	d.graph(figure{title: "Oldest message to a team", unit: "s", width: 6, steps: atMost(3600),
		description: "How long the oldest message waits to be sent; no line where none waits. Alert above 1 hour.",
		queries:     []query{{"max by (team, channel) (" + of("retry_worker_notices_oldest_seconds") + ")", "{{team}} {{channel}}"}}})
	d.graph(figure{title: "Bulk runs", unit: "short", width: 6,
		description: "Bulk runs that have not ended, by state. Held ones wait for the engine or the journal.",
		queries:     []query{{"max by (state) (" + of("retry_worker_bulk_runs") + ")", "{{state}}"}}})
	d.graph(figure{title: "Decided by bulk runs", unit: "cpm", width: 6,
		description: "Dead letters that bulk runs decided on, or could not, a minute.",
		queries:     []query{{perMinute("action, outcome", of("retry_worker_bulk_items_total")), "{{action}} {{outcome}}"}}})
}

func (d *dashboard) processes() {
	d.row("Processes")
	each := func(metric string) []query {
		return []query{{"sum by (instance) (" + of(metric) + ")", "{{instance}}"}}
	}
	d.graph(figure{title: "CPU", unit: "percentunit", description: "Of one core, by replica.",
		queries: []query{{perSecond("instance", of("process_cpu_seconds_total")), "{{instance}}"}}})
	d.graph(figure{title: "Memory", unit: "bytes", description: "Resident memory by replica.", queries: each("process_resident_memory_bytes")})
	d.graph(figure{title: "Go heap in use", unit: "bytes", description: "Bytes of live and not yet collected objects, by replica.", queries: each("go_memstats_heap_alloc_bytes")})
	d.graph(figure{title: "Goroutines", unit: "short", description: "A number that only grows is a leak.", queries: each("go_goroutines")})
	d.graph(figure{title: "Garbage collection", unit: "s", description: "Longest pause that the run-time remembers, by replica.",
		queries: []query{{"max by (instance) (" + of("go_gc_duration_seconds", `quantile="1"`) + ")", "{{instance}}"}}})
	d.graph(figure{title: "Open files", unit: "short", description: "File descriptors by replica.", queries: each("process_open_fds")})
}
