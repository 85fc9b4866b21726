package worker_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"retry-worker/internal/worker"
)

// TestEngineErrorShowsItsCause: an adapter's error is the engine's own, with a meaning added.
func TestEngineErrorShowsItsCause(t *testing.T) {
	err := fmt.Errorf("poll: %w", &worker.EngineError{Kind: worker.NotTaken, Err: io.ErrUnexpectedEOF})
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "poll: unexpected EOF" {
		t.Errorf("the cause is lost: %v", err)
	}
}

// TestActions holds the label's values to the contract.
func TestActions(t *testing.T) {
	want := []worker.Action{"completed", "bpmn_error", "failed", "superseded", "released", "unconfirmed"}
	if got := worker.Actions(); !slices.Equal(got, want) {
		t.Errorf("the actions are %v, want %v", got, want)
	}
}
