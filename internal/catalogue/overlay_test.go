package catalogue

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"retry-worker/internal/decision"
)

// overlay reads a file that extends the built-in catalogue, and holds it against what `policies show --effective` prints
// of it: that is a whole file, which decides alike.
func overlay(t *testing.T, lines string) *Catalogue {
	t.Helper()
	c, err := Parse("policies.yaml", []byte("extends: built-in\n"+lines))
	if err != nil {
		t.Fatalf("%s\n%v", lines, err)
	}
	whole, err := Parse("whole.yaml", c.Effective())
	if err != nil {
		t.Fatalf("what it comes to is refused: %v", err)
	}
	if whole.Version != c.Version || !reflect.DeepEqual(whole.Teams, c.Teams) || len(Changes(c, whole)) != 0 {
		t.Errorf("%s\ncomes to something else than a file of the whole: %v", lines, Changes(c, whole))
	}
	return c
}

// TestExtends: a file that holds what differs changes that, and nothing else.
func TestExtends(t *testing.T) {
	for _, tt := range []struct {
		name, lines string
		want        []string
	}{
		{"nothing", "", nil},
		{"a team's address", "teams:\n  ti:\n    email: [ti@hospital.example]\n", []string{"teams.ti.email: nothing, now [ti@hospital.example]"}},
		{"a limit", "version: 1\npolicies:\n  tiss-submission:\n    maxRetries: 3\n    backoff: {max: 2h}\n",
			[]string{"policies.tiss-submission.backoff.max: 4h, now 2h", "policies.tiss-submission.maxRetries: 5, now 3"}},
		{"another kind of waits", "policies:\n  tiss-submission:\n    backoff: {constant: 10m}\n", []string{
			"policies.tiss-submission.backoff.constant: nothing, now 10m", "policies.tiss-submission.backoff.exponential: {base: 5m, factor: 2}, now nothing",
			"policies.tiss-submission.backoff.jitter: 20%, now nothing", "policies.tiss-submission.backoff.max: 4h, now nothing",
			"policies.tiss-submission.backoff.min: 5m, now nothing", "policies.tiss-submission.backoff.rounding: 1m, now nothing"}},
		{"a rule before the others, with a team of its own",
			"teams: {auditoria: {description: Auditoria}}\npolicies:\n  tiss-submission:\n    permanent: [{name: our-audit, phrases: [glosa interna], reason: CLAIM_DENIED, team: auditoria}]\n",
			[]string{"policies.tiss-submission.permanent[our-audit]: nothing, now {name: our-audit, phrases: [glosa interna], reason: CLAIM_DENIED, team: auditoria}",
				"teams.auditoria: nothing, now {description: Auditoria}"}},
		{"a code to another team", "policies:\n  tiss-submission:\n    permanent: [{codes: [DUPLICATE_CLAIM], team: ti}]\n", []string{
			"policies.tiss-submission.permanent[DUPLICATE_CLAIM].hint: A cobrança já consta na operadora; confira o protocolo anterior., now nothing",
			"policies.tiss-submission.permanent[DUPLICATE_CLAIM].matches: [duplicate-claim], now nothing",
			"policies.tiss-submission.permanent[DUPLICATE_CLAIM].not: [DuplicateClaimFilter], now nothing",
			"policies.tiss-submission.permanent[DUPLICATE_CLAIM].rank: 1, now nothing",
			"policies.tiss-submission.permanent[DUPLICATE_CLAIM].team: faturamento, now ti",
			"policies.tiss-submission.permanent (order): [INVALID_PATIENT_DATA, INSURANCE_EXPIRED, AUTHORIZATION_DENIED, DUPLICATE_CLAIM], " +
				"now [DUPLICATE_CLAIM, INVALID_PATIENT_DATA, INSURANCE_EXPIRED, AUTHORIZATION_DENIED]"}},
		{"a destination, and another variable for it", "destinations: {unimed-sp: {pace: {most: 20/min}}}\npolicies:\n  tiss-submission:\n    destination: {variable: portal}\n", []string{
			"destinations: nothing, now {unimed-sp: {pace: {most: 20/min}}}", "policies.tiss-submission.destination.variable: operadora, now portal"}},
		{"a policy of one's own", "policies:\n  eligibility:\n    id: {variable: requestId, pattern: ^R$}\n    error: {variable: e}\n    maxRetries: 1\n    backoff: {constant: 5s}\n    limitTeam: ti\n",
			[]string{"policies.eligibility: nothing, now {backoff: {constant: 5s}, error: {variable: e}, id: {pattern: ^R$, variable: requestId}, limitTeam: ti, maxRetries: 1}"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, change := range Changes(Default(), overlay(t, tt.lines)) {
				got = append(got, change.String())
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("it changes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// TestRulesOfAFileComeFirst: before the built-in ones, in place of those of the same name, and whatever these match.
func TestRulesOfAFileComeFirst(t *testing.T) {
	name := Default().Policies[decision.DefaultPolicy].Rules.Classify("LoginInvalido", 0).Name
	c, err := Parse("policies.yaml", []byte("extends: built-in\npolicies:\n  tiss-submission:\n    permanent:\n"+
		"      - {name: everything, codes: [TIMEOUT, GATEWAY], rank: 1, reason: DEFERRED, team: ti}\n"+
		"    transient: [{name: "+name+", phrases: [so isto, our proxy], reason: DEFERRED}]\n"))
	mustDo(t, err)
	rules := c.Policies[decision.DefaultPolicy].Rules
	for text, want := range map[string]decision.Reason{
		"TIMEOUT": "DEFERRED", "BAD GATEWAY": "DEFERRED", "só isto": "DEFERRED", "DUPLICATE_CLAIM": "DUPLICATE_CLAIM", "SERVICE_UNAVAILABLE": "SERVICE_UNAVAILABLE",
		"PKIX path building failed at our proxy": "DEFERRED", "Service unavailable at our proxy": "SERVICE_UNAVAILABLE", "our proxy: CPF inválido": "DEFERRED",
	} {
		if got := rules.Classify(text, 0).Reason; got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	if got := rules.Classify("LoginInvalido", 0).Name; got == name {
		t.Errorf("%s is what it was, and what takes its place", name)
	}
}

// TestExtendsSample: the file that the schema is held against.
func TestExtendsSample(t *testing.T) {
	content, err := os.ReadFile("testdata/extends.yaml")
	mustDo(t, err)
	if n := len(Changes(Default(), overlay(t, strings.TrimPrefix(string(content), "# Only what differs from the built-in catalogue.\nextends: built-in\n")))); n != 7 {
		t.Errorf("%d changes, want 7", n)
	}
}

// TestExtendsVersion: a decision's catalogue is another where the whole is, and not for a comment.
func TestExtendsVersion(t *testing.T) {
	none, comment, limit := overlay(t, ""), overlay(t, "# none\n"), overlay(t, "policies: {failed-job: {maxRetries: 2}}\n")
	if none.Version != comment.Version || none.Version == limit.Version || limit.Policies["failed-job"].Catalogue != limit.Version {
		t.Errorf("versions %s, %s with a comment, %s with a limit", none.Version, comment.Version, limit.Version)
	}
}

// TestExtendsRefused: wrong names, what an upgrade took away, and what contradicts the built-in catalogue, each at its line.
func TestExtendsRefused(t *testing.T) {
	const teams, policies = "atendimento, cadastro, faturamento, ti", "failed-job, job-queue, no-retry, tiss-submission, whatsapp-message"
	for lines, want := range map[string]string{
		"extends: other.yaml\n":                  `policies.yaml:1: extends: found "other.yaml", expected built-in, the one catalogue that can be extended, or no such key`,
		"version: 1\nextends: [built-in]\n":      "policies.yaml:2: extends: found a list, expected built-in, the one catalogue that can be extended, or no such key",
		"extends: built-in\nextends: built-in\n": "policies.yaml:2: extends: found the key again (it stands on line 1), expected each key once",
		"extends: built-in\nversion: 2\n":        "policies.yaml:2: version: found 2, expected 1, the version of the format that this program reads",
		"extends: built-in\nteam: {}\n":          `policies.yaml:2: team: found the unknown key "team", expected one of extends, version, teams, policies, destinations (did you mean teams?)`,
		"extends: built-in\nteams: [ti]\n":       "policies.yaml:2: teams: found a list, expected a mapping of what differs",
		"extends: built-in\nteams:\n  faturametno: {email: [f@h.example]}\n": "policies.yaml:3: teams.faturametno: found a team that the built-in catalogue does not have and no policy names, expected one of " +
			teams + " (did you mean faturamento?), or one that a policy names",
		"extends: built-in\nteams:\n  ti: {emial: [f@h.example]}\n":    `policies.yaml:3: teams.ti.emial: found the unknown key "emial", expected one of description, email, webhook, digests, due (did you mean email?)`,
		"extends: built-in\nteams:\n  ti: {email: &a [f@h.example]}\n": `policies.yaml:3: teams.ti.email: found an anchor or alias ("a"), expected the value written out`,
		"extends: built-in\npolicies:\n  tiss-submision:\n    maxRetries: 3\n": "policies.yaml:3: policies.tiss-submision: found a policy that the built-in catalogue does not have, expected one of " +
			policies + " (did you mean tiss-submission?), or a whole policy (here without id, error, backoff, limitTeam)",
		"extends: built-in\npolicies:\n  failed-job:\n    maxRetries: 3\n    maxRetries: 3\n":   "policies.yaml:5: policies.failed-job.maxRetries: found the key again (it stands on line 4), expected each key once",
		"extends: built-in\npolicies:\n  failed-job:\n    limitTeam: tii\n":                     "policies.yaml:4: policies.failed-job.limitTeam: found \"tii\", expected one of the teams " + teams + " (did you mean ti?)",
		"extends: built-in\npolicies:\n  tiss-submission:\n    backoff:\n      max: 1m\n":       "policies.yaml:5: policies.tiss-submission.backoff.min: found \"5m\", expected min ≤ max, where min is 5m and max 1m",
		"extends: built-in\npolicies:\n  failed-job:\n    transient:\n      - {codes: [A_B]}\n": "policies.yaml:5: policies.failed-job.transient[0].codes[0]: found \"A_B\", expected a code that is a reason itself, or the key reason beside codes",
	} {
		if _, err := Parse("policies.yaml", []byte(lines)); err == nil || err.Error() != want {
			t.Errorf("%s\nis told as\n%v\nwant\n%s", lines, err, want)
		}
	}
}
