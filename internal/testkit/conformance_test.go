package testkit_test

import (
	"testing"

	"retry-worker/internal/store/storetest"
	"retry-worker/internal/testkit"
)

// closing is a Memory that can be closed, as the stores can that it stands for.
type closing struct{ *testkit.Memory }

func (c closing) Close() error {
	c.SetDown(true)
	return nil
}

// TestOracle holds the oracle to what real stores pass; Store and Reader, it is what they are held against.
func TestOracle(t *testing.T) {
	storetest.RunArchive(t, func(*testing.T) storetest.Store { return closing{testkit.NewMemory()} })
}

func TestErasuresInAnyOrder(t *testing.T) {
	storetest.RunErasures(t, func() storetest.Store { return closing{testkit.NewMemory()} })
}
