package demo

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"retry-worker/internal/worker"
)

// Process is one bundled process and the outside system that it talks to, which the demo plays.
type Process struct {
	// ID of the model.
	ID string
	// SampleID is the pattern of its samples' ids, whose number differs from run to run.
	SampleID string
	// Subjects are what its samples are called, and System is who is played.
	Subjects, System string
	// IDVariable and ErrorVariable are the names under which the process holds a sample's id and the error.
	IDVariable, ErrorVariable string
	// Work is the task that may fail.
	Work Work
	// Also are further tasks of the outside system; usually none.
	Also []Task
	// Samples that the demo starts.
	Samples []*Sample
}

// Work is a task of the outside system that may fail.
type Work struct {
	JobType string
	// ErrorCode of the BPMN error that a failure throws.
	ErrorCode string
	// Try and Done are how one try of it and its success are told.
	Try, Done string
}

// Task is a job type with its answer to one sample's job; the players' lock is held.
type Task struct {
	JobType string
	Answer  func(*players, *progress) worker.Reply
}

// Sample is one instance to start, and what the outside system and the people say to it.
type Sample struct {
	ID string
	// Shows is what it is there to show; samples that show the same are counted together.
	Shows string
	// Variables that the instance starts with, beside its id.
	Variables map[string]any
	// Failures of the work, one a try; the try after the last one succeeds.
	Failures []Failure
	// Discard is what the person in the review does; else the work is tried again.
	Discard bool
	// Left tells that where the demo stays nobody reviews it but the person who looks at the screen.
	Left bool
	// Incident tells that the worker refuses what the process holds.
	Incident bool
	// Open dependencies at the beginning (JOB_QUEUE).
	Open int
	// Silent tells that no message says when they are resolved.
	Silent bool
}

// Failure is how one try of the work ends.
type Failure struct {
	// Text of the error.
	Text string
	// Variables beside it.
	Variables map[string]any
}

// Processes are the four bundled ones with their samples. run makes the ids differ from those of an earlier run.
func Processes(run int64) []*Process {
	const room = 100 // for the samples of a run
	all := []*Process{claims(), messages(), failedJobs(), queuedJobs()}
	number := run * room
	for _, p := range all {
		for _, x := range p.Samples {
			number++
			x.ID = fmt.Sprintf(p.SampleID, number)
		}
	}
	return all
}

// texts are failures that are known by their text alone.
func texts(all ...string) []Failure {
	failures := make([]Failure, len(all))
	for i, text := range all {
		failures[i].Text = text
	}
	return failures
}

// times returns n of the same.
func times[T any](n int, x T) []T { return slices.Repeat([]T{x}, n) }

// start is the JSON that an instance starts with.
func (p *Process) start(s *Sample) string { return withAlso(p.IDVariable, s.ID, s.Variables) }

// thrown are the variables of the BPMN error that a failure throws.
func (p *Process) thrown(f Failure) string { return withAlso(p.ErrorVariable, f.Text, f.Variables) }

// withAlso is the JSON of a variable, and of others.
func withAlso(name, value string, others map[string]any) string {
	all := map[string]any{name: value}
	maps.Copy(all, others)
	return jsonObject(all)
}

func jsonObject(m map[string]any) string {
	b, err := json.Marshal(m)
	if err != nil { // cannot be: the maps hold texts, numbers and truth values
		return "{}"
	}
	return string(b)
}
