package audit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retry-worker/internal/audit"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// replayed is what came of the failures of TestReplay: two of one claim that are presumed permanent, a time-out, a
// duplicate claim, a message that its HTTP status condemned, one of which no rule knew, and a job with a retry policy of
// its own.
func replayed(t *testing.T) *testkit.Fixture {
	f := testkit.New(t, testkit.At(begin))
	for i := range 2 {
		f.Fail(decision.DefaultPolicy, "CLM-1-1", "Plano suspenso", i)
		f.Advance(time.Hour)
	}
	f.Fail(decision.DefaultPolicy, "CLM-1-2", "TIMEOUT", 0)
	f.Fail(decision.DefaultPolicy, "CLM-1-3", "DUPLICATE_CLAIM", 0)
	for id, status := range map[string]decision.Value{"MSG-1": "404", "MSG-2": "418"} {
		a := f.Analysis("whatsapp-message", id, "nobody knows", 0)
		failure, rejection := a.Policy.Read(decision.Variables{ID: decision.Text(id), Error: decision.Text(a.Error),
			RetryCount: "0", HTTPStatus: status})
		if rejection != nil {
			t.Fatal(rejection)
		}
		a.Failure = &failure
		_, err := f.Journal.Analyze(t.Context(), a)
		testkit.Must(t, err)
	}
	f.Fail("job-queue", "JOB-1", "TIMEOUT", 0)
	return f
}

func TestReplay(t *testing.T) {
	f := replayed(t)
	const tiss = decision.DefaultPolicy
	for _, tt := range []struct {
		name, file string
		want       map[string]audit.Differences
	}{
		{"the same", "", map[string]audit.Differences{tiss: {Alike: 4}}},
		{"fewer retries", "policies: {tiss-submission: {maxRetries: 0}}", map[string]audit.Differences{tiss: {Otherwise: 4}}},
		{"a presumption is tried again twice", "policies: {tiss-submission: {presumedRetries: 2}}",
			map[string]audit.Differences{tiss: {Alike: 3, Otherwise: 1}}},
		{"another team", `policies: {tiss-submission: {permanent: [{codes: [DUPLICATE_CLAIM], team: ti}]}}`,
			map[string]audit.Differences{tiss: {Alike: 3, Otherwise: 1}}},
		{"sooner", "policies: {tiss-submission: {backoff: {constant: 1m}}}",
			map[string]audit.Differences{tiss: {Alike: 2, Earlier: 2}}},
		{"later", "policies: {tiss-submission: {backoff: {constant: 2h}}}",
			map[string]audit.Differences{tiss: {Alike: 2, Later: 2}}},
		{"a status that is not in the text", "policies: {whatsapp-message: {transient: " +
			"[{name: http-404, httpStatuses: [404], reason: DEFERRED}]}}",
			map[string]audit.Differences{tiss: {Alike: 4}, "whatsapp-message": {Otherwise: 1, NotComparable: 1}}},
	} {
		b, err := catalogue.Parse("b.yaml", []byte("extends: built-in\n"+tt.file))
		testkit.Must(t, err)
		got, err := audit.Replay(t.Context(), f.Store, begin, catalogue.Default().Policies, b.Policies,
			func(int64, int64, int64) {})
		testkit.Must(t, err)
		want := map[string]audit.Differences{"whatsapp-message": {Alike: 1, NotComparable: 1}, "job-queue": {NotComparable: 1}}
		for policy, n := range tt.want {
			want[policy] = n
		}
		plain := map[string]audit.Differences{}
		for policy, n := range got {
			if sum := n.Alike + n.Otherwise + n.Earlier + n.Later + n.NotComparable; sum != n.Failures {
				t.Errorf("%s: %+v do not add up", tt.name, n)
			}
			n.Failures = 0
			plain[policy] = *n
		}
		if diff := cmp.Diff(want, plain); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}

// TestReplayOfWhatWasTaught: it holds in both, and what one catalogue does not have cannot be compared.
func TestReplayOfWhatWasTaught(t *testing.T) {
	f := testkit.New(t, testkit.At(begin))
	first := f.Fail(decision.DefaultPolicy, "CLM-1-1", "setor aguarda o auditor", 0)
	f.Advance(time.Minute)
	testkit.Must(t, f.Journal.Teach(t.Context(), decision.DefaultPolicy, first.Fingerprint,
		journal.Teaching{Class: decision.Permanent, Team: "ti", Reason: "always so", By: "ana"}))
	f.Advance(time.Minute)
	f.Fail(decision.DefaultPolicy, "CLM-1-2", "setor aguarda o auditor", 0)
	later, err := catalogue.Parse("b.yaml", []byte("extends: built-in\npolicies: {tiss-submission: {backoff: {constant: 2h}}}"))
	testkit.Must(t, err)
	for _, tt := range []struct {
		b    decision.Policies
		from time.Time
		want audit.Differences
	}{
		{later.Policies, begin, audit.Differences{Failures: 2, Alike: 1, Later: 1}},
		{later.Policies, begin.Add(time.Minute), audit.Differences{Failures: 1, Alike: 1}},
		{decision.Policies{}, begin, audit.Differences{Failures: 2, NotComparable: 2}},
	} {
		got, err := audit.Replay(t.Context(), f.Store, tt.from, catalogue.Default().Policies, tt.b,
			func(int64, int64, int64) {})
		testkit.Must(t, err)
		if diff := cmp.Diff(map[string]*audit.Differences{decision.DefaultPolicy: &tt.want}, got); diff != "" {
			t.Error(diff)
		}
	}
}
