package upgrade

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"retry-worker/internal/testkit/wait"
)

// secret of the webhooks, as the standard writes them.
const secret = "whsec_c2VncmVkbyBkZSB1bSBob3NwaXRhbCBpbWFnaW5hcmlv"

// receiver takes a team's webhooks.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	told  int             // new dead letters, of all news
	ids   map[string]bool // of the news
	twice []string
	wrong []string
}

func openReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{ids: map[string]bool{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(w http.ResponseWriter, request *http.Request) {
	var event struct {
		Data struct {
			Team string
			New  *struct{ Count int }
		}
	}
	err := json.NewDecoder(request.Body).Decode(&event)
	r.mu.Lock()
	defer r.mu.Unlock()
	id := request.Header.Get("webhook-id")
	switch {
	case err != nil || event.Data.New == nil || event.Data.Team != teamOfStays:
		r.wrong = append(r.wrong, fmt.Sprintf("%+v (%v)", event, err))
	case r.ids[id]:
		r.twice = append(r.twice, id)
	default:
		r.ids[id] = true
		r.told += event.Data.New.Count
	}
	w.WriteHeader(http.StatusNoContent)
}

// heard waits until the team was told of n dead letters in all, and holds that it was told of none twice.
func (r *receiver) heard(t *testing.T, n int) {
	t.Helper()
	told := 0
	wait.Until(t, fmt.Sprintf("the team to be told of %d dead letters", n), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		told = r.told
		return told >= n
	}, func() string { return strconv.Itoa(told) })
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told != n || len(r.twice) > 0 || len(r.wrong) > 0 {
		t.Errorf("the team was told of %d dead letters in %d messages, want %d; twice: %v; wrong: %v", r.told, len(r.ids), n, r.twice, r.wrong)
	}
}
