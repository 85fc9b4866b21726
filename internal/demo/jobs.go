package demo

// failedJobs are run by the hospital (FAILED_JOB; Retry Failed Job).
func failedJobs() *Process {
	const away = "Serviço externo indisponível"
	return &Process{
		ID: "FAILED_JOB", SampleID: "JOB-DEMO-%d", Subjects: "jobs", System: "a job runner",
		IDVariable: "jobId", ErrorVariable: "jobError",
		Work: Work{JobType: "run-job", ErrorCode: "JOB_FAILED", Try: "run", Done: "done"},
		Samples: []*Sample{
			{Shows: "done at once"},
			{Shows: "fails once, then done", Failures: texts(away)},
			{Shows: "fails twice, then done", Failures: texts(away, "connection refused")},
			{Shows: "fails beyond 3 retries, a person runs it again", Failures: times(4, Failure{Text: away})},
			{Shows: "fails beyond 3 retries, a person lets it go", Failures: times(4, Failure{Text: away}), Discard: true},
		},
	}
}
