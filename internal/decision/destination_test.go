package decision_test

import (
	"strings"
	"testing"
	"time"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// prospects of a cause: the chance is a tenth for each retry, a thousandth for each minute since, and chance.
type prospects struct {
	chance            float64
	unknown           bool
	closed, recovered int64
	explores          bool
}

func (p prospects) Version() int64 { return 9 }

func (p prospects) Probability(retry int64, since time.Duration) (float64, bool) {
	return float64(retry)/10 + since.Minutes()/1000 + p.chance, !p.unknown
}

func (p prospects) Hopeless() (closed, recovered int64, hopeless bool) {
	return p.closed, p.recovered, p.closed > 0
}

func (p prospects) Explores(string, int64) bool { return p.explores }

// TestR26Learnt: what is learnt of a cause is told, and gives a claim up where the policy says so and no person, nor
// stronger evidence, says otherwise.
func TestR26Learnt(t *testing.T) {
	hopeless, explored := prospects{closed: 40, recovered: 1}, prospects{closed: 40, recovered: 1, explores: true}
	const told = "; 1 of 40 claims with this cause recovered by a retry"
	learnt := decision.Learnt{Version: 9, Closed: 40, Recovered: 1}
	exploredToo := learnt
	exploredToo.Explored = true
	for _, tt := range []struct {
		name        string
		handOver    decision.HandOver
		rank        classify.Rank
		taught      int64
		prospects   decision.Prospects
		probability float64
		givenUp     bool
		learnt      decision.Learnt
		reason      string // behind the retry's number
	}{
		{"nobody learns", "decide", classify.Signature, 0, nil, 0, false, decision.Learnt{}, ""},
		{"nothing is known", "decide", classify.Signature, 0, prospects{unknown: true}, 0, false, decision.Learnt{}, ""},
		{"a chance, to a thousandth", "decide", classify.Signature, 0, prospects{chance: 0.0004}, 0.109, false, decision.Learnt{Version: 9}, ""},
		{"never certain", "", classify.Signature, 0, prospects{chance: 3}, 0.999, false, decision.Learnt{Version: 9}, ""},
		{"nor impossible", "", classify.Signature, 0, prospects{chance: -3}, 0.001, false, decision.Learnt{Version: 9}, ""},
		{"not asked for", "off", classify.Signature, 0, hopeless, 0, false, decision.Learnt{}, ""},
		{"advised", "advise", classify.Signature, 0, hopeless, 0.109, false, learnt, told},
		{"retried all the same", "decide", classify.Signature, 0, explored, 0.109, false, exploredToo,
			told + ", one in twenty is retried all the same"},
		{"given up", "decide", classify.Signature, 0, hopeless, 0, true, learnt, ""},
		{"stronger evidence", "decide", classify.Signature - 1, 0, hopeless, 0.109, false, decision.Learnt{Version: 9}, ""},
		{"taught", "decide", classify.Signature, 7, hopeless, 0.109, false, decision.Learnt{Version: 9}, "; taught of its cause"},
	} {
		p := decisiontest.TISSSubmission()
		p.HandOver = tt.handOver
		p.Backoff = decision.BackoffRule{Base: 10 * time.Minute, Min: time.Minute, Max: time.Hour, Factor: 1, Jitter: 0.35, Rounding: time.Minute}
		f := &decision.Failure{ID: "CLM-001-3", Error: "TIMEOUT", Taught: tt.taught, Prospects: tt.prospects,
			Match: classify.Match{Class: decision.Transient, Reason: "TIMEOUT", Rank: tt.rank}}
		d := decision.Decide(f, p, decision.Past{}, analysed)
		reason := "Transient error, retry 1 of 5" + tt.reason
		if tt.givenUp {
			reason = strings.TrimPrefix(told, "; ") + "; given to faturamento now"
		}
		if d.ShouldRetry() == (tt.givenUp) || d.RetryReason != reason || d.Learnt != tt.learnt ||
			d.SuccessProbability != tt.probability {
			t.Errorf("%s: %s, chance %v, by %+v: %s", tt.name, d.Outcome, d.SuccessProbability, d.Learnt, d.RetryReason)
		}
	}
}

// TestDestinationOfAClaim: what cannot be a name is the policy's own.
func TestDestinationOfAClaim(t *testing.T) {
	for given, want := range map[decision.Value]string{
		"": "tiss", "null": "tiss", `""`: "tiss", "true": "tiss", `" unimed "`: "unimed", "17": "17", `"\u0001x"`: "tiss",
		decision.Text(strings.Repeat("x", 64)): strings.Repeat("x", 64), decision.Text(strings.Repeat("x", 65)): "tiss",
	} {
		v := claim("0", "TIMEOUT")
		v.Destination = given
		if f, _ := decisiontest.TISSSubmission().Read(v); f.Destination != want {
			t.Errorf("%s is %q, want %q", given, f.Destination, want)
		}
	}
}
