package catalogue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/testkit/golden"
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

// TestEveryKey holds what each key of the format becomes: the policy with its rules, the teams and the destinations.
func TestEveryKey(t *testing.T) {
	c, err := Load("testdata/every-key.yaml")
	mustDo(t, err)
	p := *c.Policies["tiss-submission"]
	if p.Catalogue != c.Version || !reflect.DeepEqual(Default().Destinations.Of("amil"), destination.Defaults()) {
		t.Errorf("the policy is of catalogue %s, want %s; the built-in destination is %+v", p.Catalogue, c.Version, Default().Destinations.Of("amil"))
	}
	rules, destinations := p.Rules.Rules(), map[string]destination.Settings{}
	for _, name := range []string{"unimed-sp", "amil", "default"} {
		destinations[name] = c.Destinations.Of(name)
	}
	p.Catalogue, p.Rules, p.Destinations = "", nil, destination.Configured{}
	all, err := json.MarshalIndent(map[string]any{"policy": p, "rules": rules, "teams": c.Teams, "destinations": destinations}, "", "  ")
	mustDo(t, err)
	unset := regexp.MustCompile(`(?m)^ +"\w+": (null|""|0|false|\{\}),?\n`)
	set := unset.ReplaceAllString(string(all), "")
	golden.Check(t, "testdata/every-key.txt", regexp.MustCompile(`(?m)^ +"\w+": \{\s+\},?\n`).ReplaceAllString(set, "")+"\n")
}

// TestBackoffDefaults holds testdata/backoffs.txt: what a backoff is that does not say everything.
func TestBackoffDefaults(t *testing.T) {
	for _, line := range slices.Concat(golden.Cases(t, "testdata/backoffs.txt")...) {
		yaml, want, _ := strings.Cut(line, " -> ")
		c, err := Parse("test", bytes.Replace(defaultYAML, []byte("backoff: {list: [5s, 30s, 5m]}"), []byte("backoff: "+yaml), 1))
		mustDo(t, err)
		got := c.Policies["whatsapp-message"].Backoff
		if text := fmt.Sprintf("%+v", got); text != want {
			t.Errorf("%s is %s, want %s", yaml, text, want)
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
