package console

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
)

// home0 is an instant.
var home0 = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

func TestHostileTextsAreInert(t *testing.T) {
	for _, c := range []struct{ what, text, want string }{
		{"markup", `<script>alert("1")</script>&amp;`, `&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;&amp;amp;`},
		{"an ANSI sequence", "\x1b[31mred", `<span class="unseen">\x1B</span>[31mred`},
		{"NUL", "a\x00b", `a<span class="unseen">\x00</span>b`},
		{"a bidi override", "a\u202eb", `a<span class="unseen">U+202E</span>b`},
		{"no width", "a\u200bb\ufeff", `a<span class="unseen">U+200B</span>b<span class="unseen">U+FEFF</span>`},
		{"C1 and DEL", "\u009b\x7f", `<span class="unseen">U+009B</span><span class="unseen">\x7F</span>`},
		{"no UTF-8", "a\xffb", `a<span class="unseen">\xFF</span>b`},
		{"a carriage return of its own", "a\rb", `a<span class="unseen">\x0D</span>b`},
		{"lines", "a\r\nb\nc", "a \nb\nc"},
		{"accents", "não é válido €", "não é válido €"},
	} {
		if got := string(inert(c.text, mostShown, true)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
	if got := string(inert("a\nb", lineShown, false)); got != "a b" {
		t.Errorf("a line has %q", got)
	}
	large := string(inert(strings.Repeat("é", 1<<20), mostShown, true))
	if len(large) > mostShown+100 || !utf8.ValidString(large) || !strings.HasSuffix(large, `<span class="unseen">…</span>`) {
		t.Errorf("of 2 MiB %d bytes are shown", len(large))
	}
}

var variable = regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`)

// TestColoursCanBeRead computes the contrast of each pair of colours that stand on one another (WCAG 1.4.3, 1.4.11).
func TestColoursCanBeRead(t *testing.T) {
	sheet, err := assetFiles.ReadFile("assets/console.css")
	testkit.Must(t, err)
	light, rest, _ := strings.Cut(string(sheet), "@media (prefers-color-scheme: dark)")
	dark, _, _ := strings.Cut(rest, "\n}\n")
	text := []string{
		"ink paper", "ink card", "ink tint", "ink bad-tint", "ink warn-tint", "ink ok-tint", "soft paper", "soft card", "soft tint", "soft bad-tint", "soft ok-tint", "soft warn-tint",
		"accent paper", "accent card", "accent tint", "on-accent accent", "bad bad-tint", "warn warn-tint", "ok ok-tint", "wait wait-tint", "on-bad bad",
	}
	shapes := []string{
		"edge paper", "edge card", "accent paper", "accent card", "bad card", "bad paper", "warn card", "warn paper", "ok card", "wait card", "wait paper", "wait tint", "bad bad-tint", "ok ok-tint",
	}
	for name, sheet := range map[string]string{"light": light, "dark": dark} {
		colours := map[string]float64{}
		for _, m := range variable.FindAllStringSubmatch(sheet, -1) {
			colours[m[1]] = luminance(t, m[2])
		}
		for _, pairs := range []struct {
			names []string
			least float64
		}{{text, 4.5}, {shapes, 3}} {
			for _, pair := range pairs.names {
				front, back, _ := strings.Cut(pair, " ")
				a, found := colours[front]
				b, also := colours[back]
				if !found || !also {
					t.Errorf("%s: there is no colour for %s", name, pair)
				} else if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < pairs.least {
					t.Errorf("%s: %s has a contrast of %.2f, want %.1f", name, pair, ratio, pairs.least)
				}
			}
		}
	}
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(hex[1:], 16, 32)
	testkit.Must(t, err)
	part := func(shift int) float64 {
		c := float64(n>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*part(16) + 0.7152*part(8) + 0.0722*part(0)
}

// TestColoursAreNamed: a colour that is no variable would have no dark form.
func TestColoursAreNamed(t *testing.T) {
	css, _ := assetFiles.ReadFile("assets/console.css")
	_, rules, _ := strings.Cut(string(css), "\n*, *::before")
	if m := regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|rgba?\(|hsla?\(`).FindString(rules); m != "" {
		t.Errorf("the rules hold the colour %s", m)
	}
	for _, m := range regexp.MustCompile(`var\(--([a-z-]+)\)`).FindAllStringSubmatch(string(css), -1) {
		if !strings.Contains(string(css), "--"+m[1]+":") {
			t.Errorf("there is no variable %s", m[1])
		}
	}
}

// TestEveryStyleIsWorn: each class of the style sheet is one of a template's or of a closed set that a template puts in, and each id
// is a template's.
func TestEveryStyleIsWorn(t *testing.T) {
	css, _ := assetFiles.ReadFile("assets/console.css")
	code, markup := sources(t)
	worn := append(slices.Clone(marks), tones...)
	for _, m := range regexp.MustCompile(`class="([^"]*(?:\{\{[^}]*\}\}[^"]*)*)"`).FindAllStringSubmatch(code+markup, -1) {
		worn = append(worn, regexp.MustCompile(`[a-z][a-z-]*`).FindAllString(m[1], -1)...)
	}
	selectors := regexp.MustCompile(`(?s)/\*.*?\*/|\{[^{}]*\}`).ReplaceAllString(string(css), "")
	for _, m := range regexp.MustCompile(`([.#])([a-z][a-z_-]*)`).FindAllStringSubmatch(selectors, -1) {
		if m[1] == "." && !slices.Contains(worn, m[2]) || m[1] == "#" && !strings.Contains(markup, `id="`+m[2]+`"`) {
			t.Errorf("nothing on a page is styled by %s", m[0])
		}
	}
}

func TestTheScriptIsSmall(t *testing.T) {
	script, _ := assetFiles.ReadFile("assets/console.js")
	if n := len(script); n > 11<<10 {
		t.Errorf("the script has %d bytes; it is to stay small", n)
	}
	if !strings.Contains(string(script), `hourCycle: "h23", timeZone: words.zone`) {
		t.Error("the script tells times otherwise than the pages: by 24 hours, in the page's zone")
	}
}

func TestAgesAndCountdowns(t *testing.T) {
	for _, c := range []struct {
		d       time.Duration
		ago, in string
	}{
		{0, "há instantes", "agora"}, {38 * time.Second, "há instantes", "em 38 s"}, {252 * time.Second, "há 4 min", "em 4 min 12 s"},
		{14*time.Minute + 30*time.Second, "há 14 min", "em 14 min"}, {2 * time.Hour, "há 2 h", "em 2 h"},
		{5*time.Hour + 10*time.Minute, "há 5 h 10 min", "em 5 h 10 min"}, {47 * time.Hour, "há 47 h", "em 47 h"}, {50 * time.Hour, "há 2 dias", "em 2 dias"},
	} {
		if got := Portuguese.ago(c.d); got != c.ago {
			t.Errorf("%s: ago %q, want %q", c.d, got, c.ago)
		}
		if got := Portuguese.in(c.d); got != c.in {
			t.Errorf("%s: in %q, want %q", c.d, got, c.in)
		}
	}
}

// TestTheSuccessRate is the default policy's where it has one, and says whether both rules' targets are met.
func TestTheSuccessRate(t *testing.T) {
	figure := func(policy string, name journal.SumName, n int64) journal.Sum {
		return journal.Sum{Policy: policy, Slot: journal.SlotOf(home0), Name: name, N: n}
	}
	others := []journal.Sum{figure("a", journal.SumRecoveredRetried, 82), figure("a", journal.SumExhaustedRetried, 18)}
	for want, figures := range map[string][]journal.Sum{
		"a 0.82 false": others,
		"tiss-submission 0.9 true": append(others, figure("tiss-submission", journal.SumRecoveredRetried, 9),
			figure("tiss-submission", journal.SumExhaustedRetried, 1)),
	} {
		k, met := success(statistics.All(figures, nil, home0))
		if got := fmt.Sprint(k.Policy, " ", *k.Value, " ", met); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// letters are so many dead letters, by pages of 200.
type letters struct {
	guard.DeadLetters
	n int
}

func (l letters) List(_ context.Context, _ journal.DeadLetterFilter, cursor string, _ int) ([]deadletter.Item, string, error) {
	page, _ := strconv.Atoi(cursor)
	if (page+1)*200 >= l.n {
		return make([]deadletter.Item, l.n-page*200), "", nil
	}
	return make([]deadletter.Item, 200), strconv.Itoa(page + 1), nil
}

// TestADownloadThatEndsSaysSo: the file of a list that is longer says so in its last row, and no other does.
func TestADownloadThatEndsSaysSo(t *testing.T) {
	for n, ends := range map[int]bool{399: false, 20_000: false, 20_001: true} {
		var file strings.Builder
		v := &visit{r: httptest.NewRequest(http.MethodGet, "/", nil), Lang: English, zone: time.UTC, Now: home0, Catalogue: catalogue.Default(),
			o: &open{Guard: guard.New(guard.Services{DeadLetters: letters{n: n}})}}
		testkit.Must(t, v.writeLetters(journal.DeadLetterFilter{}, &file))
		rows := strings.Split(strings.TrimSpace(file.String()), "\n")
		if said := strings.Contains(rows[len(rows)-1], "The list goes on: this file ends at 20,000 dead letters"); said != ends {
			t.Errorf("of %d dead letters the last row says %q", n, rows[len(rows)-1])
		}
		if want := min(n, 20_000) + 1; !ends && len(rows) != want {
			t.Errorf("of %d dead letters there are %d rows, want %d", n, len(rows), want)
		}
	}
}
