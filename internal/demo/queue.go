package demo

import (
	"fmt"
	"time"

	"retry-worker/internal/worker"
)

const (
	// dependencyResolved is the message that a waiting job of JOB_QUEUE listens for.
	dependencyResolved = "dependency-resolved"
	// messageLife is how long the engine keeps a message that comes before the job listens.
	messageLife = 30 * time.Second
)

// queuedJobs bring a retry policy of their own, and wait for others (JOB_QUEUE; UC-004).
func queuedJobs() *Process {
	const failed = "Falha ao gerar o relatório"
	policy := func(maxAttempts int, delay any) map[string]any {
		return map[string]any{"maxAttempts": maxAttempts, "delayBetweenAttempts": delay}
	}
	return &Process{
		ID: "JOB_QUEUE", SampleID: "QUEUE-DEMO-%d", Subjects: "jobs with a retry policy of their own", System: "a job queue",
		IDVariable: "jobId", ErrorVariable: "jobError",
		Work: Work{JobType: "run-queued-job", ErrorCode: "JOB_FAILED", Try: "run", Done: "done"},
		Also: []Task{{JobType: "check-dependencies", Answer: checkDependencies}},
		Samples: []*Sample{
			{Shows: "done at once"},
			{Shows: "3 attempts, PT2S between them: done at the third", Variables: policy(3, "PT2S"),
				Failures: texts(failed, failed)},
			{Shows: "2 attempts, 1500 ms between them: done at the second", Variables: policy(2, 1500), Failures: texts(failed)},
			{Shows: "no retry policy: FAILED at the first failure", Failures: texts(failed), Discard: true},
			{Shows: "an error that is not retryable: FAILED whatever is left", Variables: policy(5, "PT10S"),
				Failures: []Failure{{"Relatório sem período", map[string]any{"nonRetryable": true}}}},
			{Shows: "3 attempts used up: FAILED", Variables: policy(3, "PT5S"), Failures: times(3, Failure{Text: failed})},
			{Shows: "waits for 2 dependencies, told by a message", Open: 2},
			{Shows: "waits for a dependency, nobody tells: looks again after a minute", Open: 1, Silent: true},
		},
	}
}

// checkDependencies says how many dependencies are open. Once the engine knows, one of them is resolved.
func checkDependencies(p *players, g *progress) worker.Reply {
	open := g.open
	if open == 0 {
		p.story.say(g.Sample, "no dependency open: PENDING")
	} else {
		p.story.say(g.Sample, "dependencies open: %d; WAITING", open)
	}
	r := worker.Reply{Action: worker.Completed, Variables: fmt.Sprintf(`{"openDependencies":%d}`, open)}
	if open > 0 {
		r.Taken = func() { p.resolve(g, open-1) }
	}
	return r
}

// resolve leaves so many dependencies open, and tells the engine where the sample is not silent.
func (p *players) resolve(g *progress, open int) {
	p.mu.Lock()
	g.open = open
	p.mu.Unlock()
	if g.Silent {
		p.story.say(g.Sample, "a dependency is resolved, and nobody says so")
		return
	}
	p.story.say(g.Sample, "a dependency is resolved; the message %s is published", dependencyResolved)
	if err := p.Engine.Publish(p.ctx, dependencyResolved, g.ID, messageLife); err != nil {
		p.story.note("%v; the job looks again after a minute.", err)
	}
}
