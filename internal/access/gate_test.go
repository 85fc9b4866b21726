package access_test

import (
	"net/http"
	"testing"

	"retry-worker/internal/access"
)

// A handler that was put up without the middleware lets nobody in.
func TestRequireAlone(t *testing.T) {
	_, maria := token(t, "maria", access.Admin)
	w := newWorld(t, maria)
	gate := access.New(access.Options{Tokens: func() *access.Tokens { return w.tokens }, Ended: w.endedSessions})
	w.handler = gate.Require(access.Read, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("let in") }))
	w.get("/api/v1/x").refused(t, "nobody", http.StatusUnauthorized, "login_required")
}
