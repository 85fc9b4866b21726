package notify_test

import (
	"context"
	"fmt"
	"strings"
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

// TestNewsAreGathered: the first at once, with what comes within moments; then one message per interval, whatever comes.
func TestNewsAreGathered(t *testing.T) {
	play(t, map[string]string{"ti": mailed}, func(w *world) {
		g, _ := w.gather()
		time.Sleep(time.Minute)
		w.none(tiByMail, "nothing died")
		began := time.Now()
		for range 40 { // over four seconds
			w.die(10, credentials)
			g.Wake()
			time.Sleep(100 * time.Millisecond)
		}
		for len(w.messages(tiByMail)) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("the first is told after %s", took)
		}
		n := w.send(tiByMail)
		if n.Type != notify.TypeNew || n.Data.Team != "ti" || n.Data.New == nil || n.Data.New.Count != 400 || n.Data.Open.Count != 400 || len(n.Data.New.Top) != 1 {
			t.Fatalf("told %+v, want 400 of one cause", n.Data)
		}
		c := n.Data.New.Top[0]
		if c.Count != 400 || c.Policy != "tiss-submission" || c.Rule == "" || c.Pattern == "" || c.Hint == "" || n.Data.URL != "https://retry.hospital.example/dead-letters?team=ti" {
			t.Errorf("the cause is %+v, the link %q", c, n.Data.URL)
		}
		told := time.Now()
		for time.Since(told) < 14*time.Minute {
			w.die(1, credentials)
			g.Wake()
			time.Sleep(time.Minute)
			w.none(tiByMail, fmt.Sprintf("%s after the last", time.Since(told)))
		}
		time.Sleep(90 * time.Second)
		n = w.send(tiByMail)
		if n.Data.New.Count != 14 || n.Data.Open.Count != 414 || n.Data.Open.Top != nil {
			t.Errorf("told of %d new and %d open, want 14 and 414", n.Data.New.Count, n.Data.Open.Count)
		}
		time.Sleep(time.Hour)
		w.none(tiByMail, "nothing new died")
	})
}

// TestOneMessageWaits: while a receiver does not answer, news gather behind the one that waits for it.
func TestOneMessageWaits(t *testing.T) {
	play(t, map[string]string{"ti": mailed + "\nwebhook: {url: 'https://chat.hospital.example/', secretFile: /s}\ndigest: true"}, func(w *world) {
		g, _ := w.gather()
		time.Sleep(time.Minute) // the digest's mark begins
		for range 8 * 60 {      // eight hours; the digest is due meanwhile
			w.die(1, credentials)
			g.Wake()
			time.Sleep(time.Minute)
			if n := len(w.messages(tiByMail)); n > 1 {
				t.Fatalf("%d messages wait for the mail server", n)
			}
			if len(w.messages("ti/webhook")) == 1 {
				w.send("ti/webhook") // this one answers
			}
		}
		first := w.send(tiByMail)
		time.Sleep(16 * time.Minute)
		second := w.send(tiByMail)
		if first.Data.New.Count+second.Data.New.Count != 480 || second.Data.Open.Count != 480 {
			t.Errorf("told of %d and %d, want 480 in all", first.Data.New.Count, second.Data.New.Count)
		}
	})
}

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

// TestNothingOfASingleCase: hostile errors put no line, no markup, no id and no person into a message.
func TestNothingOfASingleCase(t *testing.T) {
	hostile := []string{
		"INVALID_PATIENT_DATA\r\nBcc: alguem@mal.example\r\n\r\n<script>alert(1)</script> CPF 529.982.247-25 paciente: Maria Joaquina Silva",
		"INVALID_PATIENT_DATA \u202egnp.exe \u200b\u2028http://mal.example/senha?cpf=52998224725 maria.silva@paciente.example (11) 98765-4321",
		"INVALID_PATIENT_DATA carteira 998877665544 da guia CLM-777-1 de {{.Title}} %0d%0aSubject: x \x00\x1b[31m",
	}
	play(t, map[string]string{"cadastro": "email: [c@hospital.example]\ndigest: true"}, func(w *world) {
		w.gather()
		time.Sleep(time.Minute)
		for _, text := range hostile {
			w.die(3, text)
		}
		w.die(1, "INVALID_PATIENT_DATA caso unico da dona aurelia de tal")
		time.Sleep(30 * time.Second)
		m := w.messages("cadastro/email:c@hospital.example")
		w.send("cadastro/email:c@hospital.example")
		time.Sleep(24 * time.Hour)
		m = append(m, w.messages("cadastro/email:c@hospital.example")...)
		if len(m) != 2 || m[0].Type != notify.TypeNew || m[1].Type != notify.TypeDigest {
			t.Fatalf("%d messages", len(m))
		}
		for i := range m {
			shown := strings.ToLower(m[i].Body)
			for _, never := range []string{"529.982", "52998224725", "maria", "joaquina", "98765", "998877665544", "clm-777", "aurelia", "dona", "@mal", "@paciente",
				`\r`, `\n`, `\u0000`, `\u001b`, "\u202e", "\u200b", "\u2028", "http://mal"} {
				if strings.Contains(shown, never) {
					t.Errorf("%s holds %q:\n%s", m[i].Type, never, m[i].Body)
				}
			}
			if !strings.Contains(shown, "alert") { // the pattern is there, or this test proves nothing
				t.Errorf("no pattern is shown: %s", m[i].Body)
			}
		}
	})
}
