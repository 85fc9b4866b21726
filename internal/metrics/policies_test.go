package metrics_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/metrics"
	"retry-worker/internal/worker"
)

// jobQueue is a policy with everything that tiss-submission has not.
func jobQueue() *decision.Policy {
	p := decisiontest.TISSSubmission()
	p.Name, p.LimitTeam, p.UnknownError = "job-queue", "ti", decision.GiveUpUnknown
	p.Own = &decision.OwnVariables{MaxAttempts: "maxAttempts", Delay: "delayBetweenAttempts", NonRetryable: "nonRetryable"}
	p.Rules = decisiontest.Rules(decisiontest.Permanent("INVALID_REQUEST", "ti"), decisiontest.Transient("TIMEOUT"))
	return p
}

// permanents are the series of permanent_errors_total of a policy, as they are labelled, with their values.
func permanents(t *testing.T, url, policy string) map[string]float64 {
	t.Helper()
	all := make(map[string]float64)
	for _, m := range families(t, scrape(t, url))["permanent_errors_total"].GetMetric() {
		labels := make(map[string]string)
		for _, l := range m.Label {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["policy"] == policy {
			all[labels["reason"]+" "+labels["team"]] = m.Counter.GetValue()
		}
	}
	return all
}

// TestPolicyOfAReload: the series of a policy that a reload brings are there at 0, everything that it can end in among
// them; those of the others keep what they counted, and a policy that is gone keeps its own.
func TestPolicyOfAReload(t *testing.T) {
	m, url := served(t)
	feed(t, m)
	before := seriesOf(families(t, scrape(t, url)))
	queue := jobQueue()
	m.StartPolicies(decision.Policies{queue.Name: queue}) // and tiss-submission is gone
	all := families(t, scrape(t, url))
	for name, n := range map[string]int{"max_retries_exceeded_total": 1, "retry_scheduled_total": 2, "error_classification_distribution": 3, "retry_analysis_duration_seconds": 1,
		"retry_worker_recovery_seconds": 1} {
		if got := len(all[name].GetMetric()); got != before[name]+n {
			t.Errorf("%s: %d series, want %d more than %d", name, got, n, before[name])
		}
	}
	if got := sum(all["retry_scheduled_total"]); got != 4 {
		t.Errorf("retries scheduled: %v after the reload, want the 4 counted before", got)
	}
	want := map[string]float64{"INVALID_REQUEST ti": 0, "NON_RETRYABLE ti": 0, "UNKNOWN ti": 0}
	if got := permanents(t, url, "job-queue"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("permanent errors of job-queue: %v, want %v", got, want)
	}
	if got := permanents(t, url, "tiss-submission"); len(got) != 6 || got["INVALID_PATIENT_DATA cadastro"] != 2 {
		t.Errorf("permanent errors of tiss-submission: %v, want its five rules and PROBABLY_ACCEPTED'", got)
	}
	decideBy(t, m, queue, decision.Variables{Error: `"something new"`, MaxAttempts: "3"})
	decideBy(t, m, queue, decision.Variables{Error: `"TIMEOUT"`, NonRetryable: "true", MaxAttempts: "3"})
	want = map[string]float64{"INVALID_REQUEST ti": 0, "NON_RETRYABLE ti": 1, "UNKNOWN ti": 1}
	if got := permanents(t, url, "job-queue"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("permanent errors of job-queue: %v, want %v", got, want)
	}
}

func decideBy(t *testing.T, m *metrics.Metrics, p *decision.Policy, v decision.Variables) {
	t.Helper()
	v.ID = `"CLM-1-1"`
	f, rejection := p.Read(v)
	if rejection != nil {
		t.Fatal(rejection)
	}
	d := decision.Decide(&f, p, decision.Past{}, analysed)
	m.Hooks().Decided(worker.AnalyzeRetry, &d, time.Millisecond)
}

// TestDecisionsWhileTheCatalogueChanges: decisions by policies that nobody announced are counted too, every one, while
// reloads announce others (run it with -race).
func TestDecisionsWhileTheCatalogueChanges(t *testing.T) {
	m, url := served(t)
	const writers, decisions = 4, 100
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for i := range decisions {
				d := *decide(t, "TIMEOUT", 0)
				d.Policy = "policy-" + strconv.Itoa(i%10)
				m.Hooks().Decided(worker.AnalyzeRetry, &d, time.Millisecond)
			}
		})
	}
	all.Go(func() {
		for i := range 20 {
			p := jobQueue()
			p.Name = "policy-" + strconv.Itoa(i)
			m.StartPolicies(decision.Policies{p.Name: p})
			m.SetCatalogue("version-" + strconv.Itoa(i))
		}
	})
	all.Wait()
	if got := sum(families(t, scrape(t, url))["submission_retry_total"]); got != writers*decisions {
		t.Errorf("%v retries are counted, want %d", got, writers*decisions)
	}
}

// TestCatalogueInfoIsOneSeries: a join by version must never meet two, or none.
func TestCatalogueInfoIsOneSeries(t *testing.T) {
	m, url := served(t)
	for _, version := range []string{"0123456789ab", "ba9876543210"} {
		m.SetCatalogue(version)
		if text := scrape(t, url); strings.Count(text, "\nretry_worker_catalogue_info{") != 1 || !strings.Contains(text, "\nretry_worker_catalogue_info{version=\""+version+"\"} 1\n") {
			t.Errorf("version %s: got %s", version, text)
		}
	}
}

// TestWhatIsRefused: what /readyz is about has a gauge of its own.
func TestWhatIsRefused(t *testing.T) {
	m, url := served(t)
	for name, about := range map[string]string{
		"retry_worker_catalogue_rejected": metrics.AboutCatalogue, "retry_worker_tokens_rejected": metrics.AboutTokens,
		"retry_worker_certificate_rejected": metrics.AboutCertificate, "retry_worker_purge_refused": metrics.AboutPurge,
	} {
		for _, note := range []string{"it is wrong", ""} {
			m.Readiness.Note(about, note)
			wantLines(t, scrape(t, url), map[string]bool{name + " 1": note != "", name + " 0": note == ""})
		}
	}
	m.Readiness.Ready(metrics.AboutJournal)
	wantLines(t, scrape(t, url), map[string]bool{"retry_worker_journal_up 1": true})
	m.Readiness.NotReady(metrics.AboutJournal, "disk full")
	wantLines(t, scrape(t, url), map[string]bool{"retry_worker_journal_up 0": true})
}
