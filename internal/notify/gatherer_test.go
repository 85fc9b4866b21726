package notify_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/notify"
)

const (
	tiByMail = "ti/email:ti@hospital.example"
	mailed   = "email: [ti@hospital.example]"
)

// TestRestartsAndReplicas tell nothing twice and leave nothing out.
func TestRestartsAndReplicas(t *testing.T) {
	play(t, map[string]string{"ti": mailed + "\ndigest: true"}, func(w *world) {
		told, digests, ids := int64(0), map[string]int{}, map[string]bool{}
		for range 4 * 24 { // four days
			_, endOne := w.gather()
			_, endTwo := w.gather()
			w.die(1, credentials)
			time.Sleep(30 * time.Minute)
			endOne()
			w.die(1, patientData)
			for range 30 {
				if m := w.messages(tiByMail); len(m) == 1 {
					if ids[m[0].ID] {
						t.Fatalf("the id %s was given twice", m[0].ID)
					}
					ids[m[0].ID] = true
					n := w.send(tiByMail)
					if n.Type == notify.TypeNew {
						told += n.Data.New.Count
					} else {
						digests[n.Type+" "+n.Data.Day]++
					}
				}
				time.Sleep(time.Minute)
			}
			endTwo()
		}
		if told != 4*24 {
			t.Errorf("told of %d, want %d", told, 4*24)
		}
		want := map[string]int{"digest.daily 2000-01-01": 1, "digest.daily 2000-01-02": 1, "digest.daily 2000-01-03": 1, "digest.daily 2000-01-04": 1}
		if fmt.Sprint(digests) != fmt.Sprint(want) {
			t.Errorf("digests %v, want %v", digests, want)
		}
	})
}

// silentStore answers nothing while it is silent.
type silentStore struct {
	notify.Store
	silent atomic.Bool
}

func (s *silentStore) Watermarks(ctx context.Context) ([]deadletter.Watermark, error) {
	if s.silent.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.Watermarks(ctx)
}

// TestStoreDown: it is told once, and news come when the store does.
func TestStoreDown(t *testing.T) {
	for name, down := range map[string]func(w *world, s *silentStore, is bool){
		"away":   func(w *world, _ *silentStore, is bool) { w.Memory.SetDown(is) },
		"silent": func(_ *world, s *silentStore, is bool) { s.silent.Store(is) },
	} {
		play(t, map[string]string{"ti": mailed}, func(w *world) {
			w.die(2, credentials)
			s := &silentStore{Store: w.options.Store}
			w.options.Store = s
			down(w, s, true)
			w.gather()
			time.Sleep(10 * time.Minute)
			if n := w.logs.FilterMessageSnippet("cannot be read").Len(); n != 1 {
				t.Errorf("%s: it was told %d times", name, n)
			}
			down(w, s, false)
			time.Sleep(2 * time.Minute)
			if n := w.send(tiByMail); n.Data.New.Count != 2 {
				t.Errorf("%s: told of %d, want 2", name, n.Data.New.Count)
			}
		})
	}
}
