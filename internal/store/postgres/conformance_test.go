package postgres

import (
	"testing"

	realserver "retry-worker/e2e/postgres"
	"retry-worker/internal/store/storetest"
)

func TestItIsAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store { return open(t, realserver.Database(t)) })
}
