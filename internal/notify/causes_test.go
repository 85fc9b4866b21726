package notify_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/notify"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
)

// find looks for new causes, as each replica does every minute.
func (w *world) find() {
	w.t.Helper()
	_, err := statistics.FindNew(w.t.Context(), w.Memory, time.Now())
	testkit.Must(w.t, err)
}

// TestNewCausesAreTold: to the team that acts on them alone, once, by whoever gathers, and those that come within the interval
// together. The error of a single claim is not shown.
func TestNewCausesAreTold(t *testing.T) {
	const byWebhook = "ti/webhook"
	hook := "webhook: {url: 'https://chat.hospital.example/x', secretFile: '" + secretFile(t, secretText) + "'}"
	play(t, map[string]string{"ti": mailed + "\n" + hook, "cadastro": "email: [cadastro@hospital.example]"}, func(w *world) {
		told := func(key string) []notify.NewCause {
			t.Helper()
			for range 40 {
				for _, m := range w.messages(key) {
					if n := w.send(key); n.Type == notify.TypeCauses {
						if n.Data.URL != "https://retry.hospital.example/" {
							t.Errorf("the link is %s", n.Data.URL)
						}
						return n.Data.NewCauses
					} else if m.Type == notify.TypeNew {
						continue
					}
				}
				time.Sleep(time.Minute)
			}
			return nil
		}
		_, end := w.gather()
		w.gather()
		w.die(5, credentials)
		w.find()
		w.find()
		got := told(tiByMail)
		if len(got) != 1 || got[0].Failures != 5 || got[0].Claims != 5 || got[0].Pattern == "" || got[0].Before != nil ||
			!strings.HasPrefix(got[0].URL, "https://retry.hospital.example/causes/"+got[0].ID) {
			t.Fatalf("told %+v", got)
		}
		end()
		if again := told(tiByMail); again != nil {
			t.Errorf("told again: %+v", again)
		}
		for i := range 5 { // one claim alone
			w.Fail("tiss-submission", "CLM-888-1", fmt.Sprint("LoginInvalido: token expirado ", i), 0)
		}
		w.die(5, credentials+" de novo")
		w.find()
		got = told(tiByMail)
		if len(got) != 2 || (got[0].Pattern == "") == (got[1].Pattern == "") {
			t.Errorf("told of two %+v", got)
		}
		if one, two := told(byWebhook), told(byWebhook); len(one) != 1 || len(two) != 2 {
			t.Errorf("who took nothing before is told of %d and %d, want 1 and 2", len(one), len(two))
		}
		if others := told("cadastro/email:cadastro@hospital.example"); others != nil {
			t.Errorf("another team is told %+v", others)
		}
	})
}

// TestDigestAdvises: of a team's causes whose retries hardly help, until something is taught of them or they are gone.
func TestDigestAdvises(t *testing.T) {
	play(t, map[string]string{"faturamento": withDigest}, func(w *world) {
		const key = "faturamento/email:ti@hospital.example"
		w.options.Learner = w.Learner
		w.gather()
		for i := range 41 {
			id := fmt.Sprintf("CLM-%03d-1", i)
			w.Fail("tiss-submission", id, "setor 7 aguarda o auditor", 4)
			w.Fail("tiss-submission", id, "setor 7 aguarda o auditor", 5)
		}
		testkit.Must(t, w.Learner.Refresh(t.Context(), time.Now()))
		days := map[string]int{}
		for len(days) < 9 {
			time.Sleep(time.Minute)
			if len(w.messages(key)) == 0 {
				continue
			}
			if n := w.send(key); n.Type == notify.TypeDigest {
				days[n.Data.Day] = len(n.Data.Advised)
				for _, a := range n.Data.Advised {
					if a.Recovered != 0 || a.Closed != 41 || a.Pattern != "setor # aguarda o auditor" {
						t.Errorf("advised is %+v", a)
					}
				}
			}
		}
		if days["2000-01-01"] != 1 || days["2000-01-07"] != 1 || days["2000-01-09"] != 0 {
			t.Errorf("advice by day: %v", days)
		}
	})
}
