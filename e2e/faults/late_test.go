package faults_test

import (
	"context"
	"sync"
	"time"

	"retry-worker/internal/worker"
)

// sent is the engine's port, with a note of when each job's last answer was sent: when it arrives is not
// the worker's doing.
type sent struct {
	worker.Engine

	mu   sync.Mutex
	last map[int64]time.Time
}

func (s *sent) note(key int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[key] = time.Now()
}

func (s *sent) Complete(ctx context.Context, j *worker.Job, variables string) error {
	s.note(j.Key)
	return s.Engine.Complete(ctx, j, variables)
}

func (s *sent) Throw(ctx context.Context, j *worker.Job, e worker.BPMNError) error {
	s.note(j.Key)
	return s.Engine.Throw(ctx, j, e)
}

func (s *sent) Fail(ctx context.Context, j *worker.Job, f worker.Failure) error {
	s.note(j.Key)
	return s.Engine.Fail(ctx, j, f)
}

// saidNothingTooLate fails where the worker, which has left, sent an answer after the job had run out on
// it. The engine's clock must not have been moved.
func (w *inside) saidNothingTooLate() {
	w.scene.t.Helper()
	for _, j := range w.scene.Journal() {
		var until time.Time
		for _, given := range j.Activations {
			if given.Worker == w.name {
				until = given.Deadline
			}
		}
		if at := w.sent.last[j.Key]; at.After(until) {
			w.scene.t.Errorf("job %d: an answer was sent %s after its time-out", j.Key, at.Sub(until))
		}
	}
}

// arrivedInTime fails where an answer of the worker reached the engine after one of the jobs had run out on
// it.
func (s *scene) arrivedInTime(name string, keys []int64) {
	s.t.Helper()
	for _, key := range keys {
		j, _ := s.Job(key)
		var until time.Time
		for _, given := range j.Activations {
			if given.Worker == name {
				until = given.Deadline
			}
		}
		for _, a := range j.Answers {
			if a.Worker == name && a.Reached && a.At.After(until) {
				s.t.Errorf("job %d: %v came %s after its time-out", j.Key, a.Method, a.At.Sub(until))
			}
		}
	}
}
