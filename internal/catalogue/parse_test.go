package catalogue

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/testkit/golden"
	"retry-worker/internal/text"
)

// problemLine is what each line of an error is but the one that counts the rest.
var problemLine = regexp.MustCompile(`^[^:]+:[1-9][0-9]*: [^ ]+( [^ ]+)?: found .+, expected .+$`)

// TestBadCatalogues: each file of testdata/bad is refused with the lines beside it, everything at once.
func TestBadCatalogues(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			mustDo(t, err)
			c, err := Parse(filepath.Base(file), content)
			var wrong *Error
			if c != nil || !errors.As(err, &wrong) {
				t.Fatalf("a catalogue, %v", err)
			}
			for _, line := range wrong.Lines()[:len(wrong.Problems)] {
				if !problemLine.MatchString(line) {
					t.Errorf("not FILE:LINE: FIELD: found …, expected …: %s", line)
				}
			}
			golden.Check(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

// TestEveryKey: what each key of the format becomes.
func TestEveryKey(t *testing.T) {
	c, err := Load("testdata/every-key.yaml")
	mustDo(t, err)
	p := c.Policies["tiss-submission"]
	got := *p
	got.Rules, got.Destinations = nil, destination.Configured{}
	want := decision.Policy{
		Name: "tiss-submission", Description: "Every key", Catalogue: c.Version,
		IDVariable: "claimId", ErrorVariable: "submissionError", HTTPStatusVariable: "httpStatus",
		Own:       &decision.OwnVariables{MaxAttempts: "attempts", Delay: "delay", NonRetryable: "final"},
		IDPattern: regexp.MustCompile(`^(CLM|GUIA)-[0-9]+$|^X-.+$`), InvalidID: decision.InvalidClaimID, MaxRetries: 1000,
		Backoff: decision.BackoffRule{
			Base: 90 * time.Second, Factor: 1.5, Min: time.Minute, Max: 48 * time.Hour, Jitter: 0.125, Rounding: 30 * time.Second},
		TotalLimit: 366 * 24 * time.Hour, Salt: "sal", EmptyError: decision.AssumeTransient, UnknownError: decision.GiveUpUnknown, LimitTeam: "ti",
		PresumedRetries: 2, Destination: &decision.DestinationVariable{Variable: "operadora", Default: "tiss"}, Stretch: true,
		Context: []decision.ContextField{{Variable: "operadora", Label: text.Translated{Portuguese: "Operadora", English: "Insurer"}, Type: "text"}, {Variable: "valor", Label: text.Translated{Portuguese: "Valor"}, Type: "money"},
			{Variable: "submissionDeadline", Label: text.Translated{Portuguese: "Prazo"}, Type: "time"}},
	}
	same := cmp.Comparer(func(a, b *regexp.Regexp) bool { return a.String() == b.String() })
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Errorf("the policy differs (-want +got):\n%s", diff)
	}
	wantRules := []classify.Rule{
		{
			Name: "everything", Class: decision.Permanent, Rank: classify.TISS, Reason: "CLAIM_DENIED", Team: "faturamento", Hint: text.Translated{Portuguese: "Confira a guia.", English: "Check the claim."},
			Codes: []string{"DUPLICATE_CLAIM", "1234"}, Statuses: []string{"404", "410", "422"}, TISSFaults: []string{"LoginInvalido"},
			TISSCodes: []string{"1308", "10xx"}, Phrases: []string{"guia recusad*"}, Patterns: []string{"guia [0-9]{1,9} (negada|recusada)"},
			Matches: []string{"guia 1 negada"}, Not: []string{"guia 1 paga"},
		},
		codeRule(decision.Permanent, "INSURANCE_EXPIRED", "INSURANCE_EXPIRED", "ti"),
		codeRule(decision.Permanent, "OUR_CODE", "DEFERRED", "ti"),
		codeRule(decision.Permanent, "OTHER_CODE", "DEFERRED", "ti"),
		codeRule(decision.Transient, "TIMEOUT", "TIMEOUT", ""),
		codeRule(decision.Transient, "503", "503", ""),
		{Name: "busy", Class: decision.Transient, Rank: classify.Signature, Reason: "503", Hint: text.Translated{Portuguese: "Aguarde."}, Codes: []string{"BUSY_NOW"}, Statuses: []string{"5xx"}},
		{
			Name: "patient", Class: decision.Permanent, Rank: classify.Refusal, Reason: "INVALID_PATIENT_DATA", Team: "ti",
			Refusals: []string{"duplicad*"}, Approvals: []string{"autorizad*"}, Things: []string{"cpf"},
		},
	}
	empty := cmp.FilterValues(func(a, b []string) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore())
	if diff := cmp.Diff(wantRules, p.Rules.Rules(), empty); diff != "" {
		t.Errorf("the rules differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[decision.Team]Team{"faturamento": {Description: "Faturamento"}, "ti": {
		Email:   []string{"ti@hospital.example", "plantao.ti+fila@mail.hospital.example"},
		Webhook: &Webhook{URL: "https://chat.hospital.example:8443/hooks/retry?room=ti", SecretFile: "/run/secrets/ti"},
		Digest:  true,
	}}, c.Teams); diff != "" {
		t.Errorf("the teams differ (-want +got):\n%s", diff)
	}
	other := destination.Settings{
		OpensAt: destination.Threshold{Failures: 0.25, Of: 10, Within: time.Minute},
		Probe:   destination.Probe{Every: 10 * time.Minute, Expect: []int{200, 204}},
		Pace:    destination.Pace{Start: 2, Most: 120, Factor: 1.5, Step: 30 * time.Second, OnRateLimit: 0.7, Limited: true},
	}
	unimed := other
	unimed.Probe.URL, unimed.Pace.Most = "https://portal.unimed.example/tiss?wsdl", 20
	exported := cmp.AllowUnexported(destination.Pace{})
	for name, want := range map[string]destination.Settings{"unimed-sp": unimed, "amil": other, "default": other} {
		if diff := cmp.Diff(want, c.Destinations.Of(name), exported); diff != "" {
			t.Errorf("the destination %s differs (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(destination.Defaults(), Default().Destinations.Of("amil"), exported); diff != "" {
		t.Errorf("the built-in destination differs (-want +got):\n%s", diff)
	}
}

func codeRule(class decision.ErrorClassification, code string, reason decision.Reason, team decision.Team) classify.Rule {
	return classify.Rule{Name: code, Class: class, Rank: classify.Signature, Reason: reason, Team: team, Codes: []string{code}}
}

// TestBackoffDefaults: what a backoff is that does not say everything.
func TestBackoffDefaults(t *testing.T) {
	const ms, s, m, h = time.Millisecond, time.Second, time.Minute, time.Hour
	for yaml, want := range map[string]decision.BackoffRule{
		"{constant: 30s}":                                           {Base: 30 * s, Min: 30 * s, Max: 30 * s, Factor: 1, Rounding: ms},
		"{constant: 5m}":                                            {Base: 5 * m, Min: 5 * m, Max: 5 * m, Factor: 1, Rounding: s},
		"{constant: 10m, jitter: 10%}":                              {Base: 10 * m, Min: 9 * m, Max: 11 * m, Factor: 1, Jitter: 0.1, Rounding: s},
		"{constant: 1m, jitter: 12.5%}":                             {Base: m, Min: 52_500 * ms, Max: 67_500 * ms, Factor: 1, Jitter: 0.125, Rounding: ms},
		"{constant: 65s, jitter: 1%}":                               {Base: 65 * s, Min: 64 * s, Max: 66 * s, Factor: 1, Jitter: 0.01, Rounding: s},
		"{constant: 100s, rounding: 1m}":                            {Base: 100 * s, Min: 2 * m, Max: 2 * m, Factor: 1, Rounding: m},
		"{constant: 20s, rounding: 7s}":                             {Base: 20 * s, Min: 21 * s, Max: 21 * s, Factor: 1, Rounding: 7 * s},
		"{constant: 1ms, jitter: 50%}":                              {Base: ms, Min: ms, Max: 2 * ms, Factor: 1, Jitter: 0.5, Rounding: ms},
		"{list: [1m, 5m, 2m]}":                                      {List: []time.Duration{m, 5 * m, 2 * m}, Min: m, Max: 5 * m, Factor: 1, Rounding: s},
		"{list: [5s], jitter: 20%}":                                 {List: []time.Duration{5 * s}, Min: 4 * s, Max: 6 * s, Factor: 1, Jitter: 0.2, Rounding: ms},
		"{exponential: {base: 1s, factor: 3}, max: 1h}":             {Base: s, Factor: 3, Min: s, Max: h, Rounding: ms},
		"{exponential: {base: 2m, factor: 1}, max: 1d, jitter: 0%}": {Base: 2 * m, Factor: 1, Min: 2 * m, Max: 24 * h, Rounding: s},
		"{exponential: {base: 1s, factor: 1000}, min: 1m, max: 1h, rounding: 1m}": {Base: s, Factor: 1000, Min: m, Max: h, Rounding: m},
	} {
		c, err := Parse("test", bytes.Replace(defaultYAML, []byte("backoff: {list: [5s, 30s, 5m]}"), []byte("backoff: "+yaml), 1))
		if err != nil {
			t.Errorf("%s: %v", yaml, err)
			continue
		}
		got := c.Policies["whatsapp-message"].Backoff
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", yaml, diff)
		}
		for _, d := range []time.Duration{got.Min, got.Max, got.Rounding} {
			if d <= 0 || d%got.Precision() != 0 {
				t.Errorf("%s: %s is no multiple of the precision %s (R7)", yaml, d, got.Precision())
			}
		}
	}
}

// TestVersionIsTheContents: one byte makes another version, the file's name does not.
func TestVersionIsTheContents(t *testing.T) {
	one, err := Parse("a", defaultYAML)
	mustDo(t, err)
	same, err := Parse("b", defaultYAML)
	mustDo(t, err)
	other, err := Parse("a", append(bytes.Clone(defaultYAML), '\n'))
	mustDo(t, err)
	if one.Version != same.Version || one.Version == other.Version || one.Source != "a" || same.Source != "b" {
		t.Errorf("%s of %s, %s of %s, and %s with one byte more", one.Version, one.Source, same.Version, same.Source, other.Version)
	}
}

// TestSmallestCatalogue: the other policies may be left out, and the file's replaces the default's whole.
func TestSmallestCatalogue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.yaml")
	write(t, path, []byte("\ufeffversion: 1 # with a byte order mark, and Windows' line ends\r\nteams: {ti: {}}\r\npolicies:\r\n  tiss-submission: {id: {variable: a, pattern: ^a$}, error: {variable: e}, maxRetries: 0, backoff: {constant: 1s}, limitTeam: ti}\r\n"))
	c, err := Load(path)
	mustDo(t, err)
	if len(c.Policies) != 1 || c.Source != path {
		t.Errorf("%q of %s", c.Policies.Names(), c.Source)
	}
	if m := c.Policies["tiss-submission"].Rules.Classify("DUPLICATE_CLAIM", 0); m.Class != decision.Unknown {
		t.Errorf("without rules, a code is %s", m.Class)
	}
}

// TestHostileCatalogues are refused, soon, in few words and in little room.
func TestHostileCatalogues(t *testing.T) {
	const mib = 1 << 20
	fill := func(before, piece string) []byte {
		return []byte(before + strings.Repeat(piece, (mib-len(before))/len(piece)))
	}
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	sound := string(defaultYAML)
	inRules, _, _ := strings.Cut(sound, "    permanent:\n")
	for name, content := range map[string][]byte{
		"10 MB":              make([]byte, 10<<20),
		"NULs":               make([]byte, mib),
		"deep flow lists":    fill("", "["),
		"deep flow mappings": fill("", "{a: "),
		"deep blocks":        fill("", "- "),
		"deep keys":          fill("", "? "),
		"deep in a field":    fill("version: 1\npolicies: ", "["),
		"aliases":            []byte(bomb.String()),
		"one long key":       fill("", "k"),
		"one long line":      fill("version: ", "1"),
		"many keys":          fill("", "a:\n"),
		"many names":         fill("version: 1\nteams: {}\npolicies:\n", "  x: {}\n"),
		"comments":           fill("", "#\n"),
		"comments at a key":  fill("version: 1\n", "a: 1 #x\n"),
		"documents":          fill("", "---\n"),
		"anchors":            fill("", "- &a 1\n"),
		"tags":               fill("", "- !!int 1\n"),
		"quotes":             fill("version: ", `"`),
		"escapes":            fill("version: \"", `\`),
		"block text":         fill("version: |\n", " x\n"),
		"many bad codes":     fill(inRules+"    transient:\n", "    - codes: [x]\n"),
		"many same codes":    fill(inRules+"    transient:\n", "    - codes: [TIMEOUT]\n"),
		"many patterns":      fill(inRules+"    permanent:\n", "    - {name: a, patterns: ['(abcd.{0,200}){5}'], reason: 503, team: ti}\n"),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			c, err := Parse("hostile", content)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if c != nil || err == nil {
				t.Fatal("it is taken")
			}
			if len(err.Error()) > 20*2000 {
				t.Errorf("the error is %d bytes long", len(err.Error()))
			}
			if took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
			if room := after.TotalAlloc - before.TotalAlloc; room > 2<<30 {
				t.Errorf("it took %d MiB", room>>20)
			}
			t.Logf("%s, %d MiB: %.150s", took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20, err)
		})
	}
}

// FuzzParse: never a panic; a catalogue whose policies can decide, or problems that each say where and what.
func FuzzParse(f *testing.F) {
	f.Add(defaultYAML)
	for _, pattern := range []string{"testdata/*.yaml", "testdata/bad/*.yaml", "testdata/extends/*.yaml", "../../docs/examples/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatal(pattern, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			mustDo(f, err)
			f.Add(content)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		c, err := Parse("fuzz", content)
		if (c == nil) == (err == nil) {
			t.Fatalf("%v and %v", c, err)
		}
		if err != nil {
			wantProblems(t, err)
			return
		}
		for name, p := range c.Policies {
			wantSound(t, name, p)
		}
		if _, rejection := c.Policies.Find(""); rejection != nil {
			t.Error(rejection)
		}
	})
}

func wantProblems(t *testing.T, err error) {
	var wrong *Error
	if !errors.As(err, &wrong) || len(wrong.Problems) == 0 || len(wrong.Problems) > maxProblems {
		t.Fatalf("%#v", err)
	}
	for _, p := range wrong.Problems {
		if p.Line < 1 || p.Field == "" || p.Found == "" || p.Expected == "" || strings.ContainsAny(p.Field+p.Found+p.Expected, "\n\r\x1b") {
			t.Errorf("%#v", p)
		}
	}
}

// wantSound fails unless p decides, its waits keep to its bounds, and its instants to its precision.
func wantSound(t *testing.T, name string, p *decision.Policy) {
	if p.Name != name || p.MaxRetries < 0 || p.LimitTeam == "" || p.IDPattern == nil || p.Rules == nil {
		t.Fatalf("%#v", p)
	}
	for n := range int64(5) {
		for _, draw := range []float64{0, 0.3, 0.999} {
			d := p.Backoff.After(draw, n).Delay
			if d < time.Millisecond || d < p.Backoff.Min || d > p.Backoff.Max || d%p.Backoff.Precision() != 0 {
				t.Errorf("%s: wait %d is %s by %+v", name, n, d, p.Backoff)
			}
		}
	}
	PlanAt(p, decision.OwnPolicy{}, "", time.Time{})
	for _, r := range p.Rules.Rules() {
		if r.Name == "" || r.Reason == "" || (r.Class == decision.Permanent) != (r.Team != "") {
			t.Errorf("%s: %#v", name, r)
		}
	}
	p.Rules.Classify("HTTP 503 TIMEOUT glosa 1308", 404)
}
