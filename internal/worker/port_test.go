package worker_test

import (
	"errors"
	"fmt"
	"io"
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
