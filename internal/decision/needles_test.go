package decision_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// Words of few letters, so that they begin and end alike and stand in each other: of 1 to 12 letters, around the sizes of
// the index's keys.
var needleWord = rapid.Custom(func(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "ab", "aba", "abab", "ababa", "abababa", "abababab", "ababababa", "abababababab", "b", "ba", "baba", "babab", "1", "12"}).Draw(t, "word")
})

var needleWords = rapid.Custom(func(t *rapid.T) []string { return rapid.SliceOfN(needleWord, 1, 4).Draw(t, "words") })

// needleRule is a rule for one text, the kinds by turns; ok is false where it is too short to be one.
func needleRule(t *rapid.T, name string) (r decision.Rule, ok bool) {
	words := needleWords.Draw(t, "needle")
	text := strings.Join(words, " ")
	r = decision.Rule{Name: name, Class: decision.Permanent, Reason: "INVALID_REQUEST", Team: "ti"}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		code := strings.ToUpper(strings.Join(words, "_"))
		r.Codes, ok = []string{code}, strings.Trim(code, "0123456789") != ""
	case 1:
		r.Phrases, ok = []string{text}, true
	case 2:
		r.Phrases, ok = []string{text + "*"}, true
	default:
		space := rapid.SampledFrom([]string{"", " "})
		r.Patterns, ok = []string{space.Draw(t, "before") + text + space.Draw(t, "behind")}, true
	}
	return r, ok && len(text) >= 4
}

// needleText is made of the same words, with what may stand between them: one gap, several, none, and characters that
// are a letter to phrases and a gap to codes.
var needleText = rapid.Custom(func(t *rapid.T) string {
	gap := rapid.SampledFrom([]string{" ", " ", " ", "", "--", "...\n", "_", "é", "á", "\u0301", "ſ", "ı", "\xff", "–", strings.Repeat(" .", 40)})
	var b strings.Builder
	b.WriteString(gap.Draw(t, "first"))
	for _, word := range rapid.SliceOfN(needleWord, 0, 40).Draw(t, "text") {
		b.WriteString(word)
		b.WriteString(gap.Draw(t, "gap"))
	}
	return b.String()
})

var (
	noCode   = regexp.MustCompile(`[^A-Z0-9]+`)
	noPhrase = regexp.MustCompile(`[^a-z0-9]+`)
	spaces   = regexp.MustCompile(`\s+`)
	unaccent = strings.NewReplacer("é", "e", "á", "a", "\u0301", "", "ſ", "s", "ı", "i")
)

// holds is R3, and what docs/policies.md says of phrases and patterns, in the plainest way.
func holds(r decision.Rule, text string) bool {
	folded := unaccent.Replace(damaged(text))
	switch {
	case r.Codes != nil:
		return strings.Contains(noCode.ReplaceAllString(strings.ToUpper(text), "_"), r.Codes[0])
	case r.Patterns != nil:
		plain := spaces.ReplaceAllString(strings.ReplaceAll(folded, "–", " "), " ")
		return regexp.MustCompile(r.Patterns[0]).MatchString(plain)
	default:
		phrase, anyEnd := strings.CutSuffix(r.Phrases[0], "*")
		if !anyEnd {
			phrase += " "
		}
		return strings.Contains(" "+strings.Trim(noPhrase.ReplaceAllString(folded, " "), " ")+" ", " "+phrase)
	}
}

// damaged reads a byte that is no UTF-8 as ÿ before what may be a letter, else as a gap.
func damaged(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != 0xff:
			b.WriteByte(text[i])
		case i+1 < len(text) && (text[i+1] >= 0x80 || 'a' <= text[i+1] && text[i+1] <= 'z'):
			b.WriteByte('y')
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// TestNeedlesEqualOracle: whatever rules there are, and wherever in a text they stand, the first that holds is found.
func TestNeedlesEqualOracle(t *testing.T) {
	matched := 0
	rapid.Check(t, func(t *rapid.T) {
		var rules []decision.Rule
		for i := range rapid.IntRange(1, 12).Draw(t, "rules") {
			if r, ok := needleRule(t, fmt.Sprint("rule ", i)); ok {
				rules = append(rules, r)
			}
		}
		c := decisiontest.Rules(rules...)
		for range 8 {
			text := needleText.Draw(t, "text")
			want := ""
			for _, r := range rules {
				if holds(r, text) {
					want = r.Name
					if r.Codes != nil {
						want = r.Codes[0]
					}
					break
				}
			}
			if m := c.Classify(text, 0); m.Name != want {
				t.Fatalf("%q matches %q, want %q of %+v", text, m.Name, want, rules)
			}
			if want != "" {
				matched++
			}
		}
	})
	if matched == 0 {
		t.Error("no text matched a rule")
	}
}

// TestNeedlesAtEveryPlace: a text is found wherever it stands, whatever else is looked for and as far as its words reach
// into the blocks that a message is read in; and once a letter is missing, nowhere.
func TestNeedlesAtEveryPlace(t *testing.T) {
	for name, r := range map[string]decision.Rule{
		"a code of one word":    decisiontest.Transient("TIMEOUT"),
		"a short code":          decisiontest.Transient("EPIPE"),
		"a code of words":       decisiontest.Transient("RATE_LIMIT"),
		"a code of short words": decisiontest.Transient("A_1_B"),
		"a phrase":              byPhrase("a phrase", "prazo de envio"),
		"a beginning":           byPhrase("a beginning", "indisponiv*"),
		"a short word":          byWords("a short word", "recebido + ja"),
		"a pattern":             byPattern("a pattern", `lote [0-9]{1,4} `),
		"a pattern's words":     byPattern("a pattern's words", `[0-9] nao processado`),
	} {
		for _, others := range [][]decision.Rule{nil, {decisiontest.Transient("ZZZZ")}, {decisiontest.Transient("QUEBRADO")}, decisiontest.Many(30)} {
			c := decisiontest.Rules(append([]decision.Rule{r}, others...)...)
			text := map[string]string{
				"a code of one word": "timeout", "a short code": "epipe", "a code of words": "rate limit", "a code of short words": "a 1 b", "a phrase": "prazo de envio",
				"a beginning": "indisponivel", "a short word": "recebido ja", "a pattern": "lote 12 ", "a pattern's words": "7 nao processado",
			}[name]
			for place := range 150 {
				for _, filler := range []string{"x", "x ", "é ", " "} {
					before := strings.Repeat(filler, place) + " "
					if m := c.Classify(before+text, 0); m.Text != text {
						t.Fatalf("%s behind %d of %q beside %d: %q", name, place, filler, len(others), m.Text)
					}
					if m := c.Classify(before+text[:2]+"#"+text[3:], 0); m.Name != "" && !strings.ContainsAny(text[1:4], " ") {
						t.Fatalf("%s without a letter behind %d of %q: %q", name, place, filler, m.Text)
					}
				}
			}
		}
	}
}

// wordsEntry is groups of words of few letters, some with any ending; at least one group has only words that can be an
// anchor's.
var wordsEntry = rapid.Custom(func(t *rapid.T) [][]string {
	word := rapid.SampledFrom([]string{"a", "ab", "aba", "ab*", "b*", "aba*", "abab", "abab*", "ababa", "abababab*", "babab", "1"})
	anchor := rapid.SampledFrom([]string{"abab", "abab*", "ababa", "babab", "abababab*", "ababababa"})
	groups := [][]string{rapid.SliceOfN(anchor, 1, 2).Draw(t, "anchor")}
	for range rapid.IntRange(0, 2).Draw(t, "groups") {
		groups = append(groups, rapid.SliceOfN(word, 1, 3).Draw(t, "group"))
	}
	return groups
})

// wordsNear is what docs/policies.md says of words: one of each group, at most eight words from the anchor's.
func wordsNear(groups [][]string, tokens []string) bool {
	isIn := func(group []string, token string) bool {
		for _, w := range group {
			if start, anyEnd := strings.CutSuffix(w, "*"); token == start || anyEnd && strings.HasPrefix(token, start) {
				return true
			}
		}
		return false
	}
	least := func(group []string) int {
		n := 99
		for _, w := range group {
			n = min(n, len(strings.TrimSuffix(w, "*")))
		}
		return n
	}
	anchor := 0
	for i := range groups {
		if least(groups[i]) > least(groups[anchor]) {
			anchor = i
		}
	}
	for i, token := range tokens {
		if !isIn(groups[anchor], token) {
			continue
		}
		near := tokens[max(0, i-8):min(len(tokens), i+9)]
		all := true
		for _, group := range groups {
			any := false
			for _, other := range near {
				any = any || isIn(group, other)
			}
			all = all && any
		}
		if all {
			return true
		}
	}
	return false
}

// TestWordsEqualOracle: words of any length, with any ending or none, in any order.
func TestWordsEqualOracle(t *testing.T) {
	matched, not := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		groups := wordsEntry.Draw(t, "entry")
		var lists []string
		for _, group := range groups {
			lists = append(lists, strings.Join(group, " | "))
		}
		c := decisiontest.Rules(byWords("words", strings.Join(lists, " + ")))
		for range 8 {
			words := rapid.SampledFrom([]string{"a", "ab", "aba", "abab", "ababa", "abababab", "ababababa", "babab", "1", "x", "y", "z", "xx", "yy"})
			tokens := rapid.SliceOfN(words, 0, 24).Draw(t, "tokens")
			want := wordsNear(groups, tokens)
			if m := c.Classify(strings.Join(tokens, " "), 0); (m.Name != "") != want {
				t.Fatalf("%q matches %q, want %t of %v", tokens, m.Text, want, groups)
			}
			if want {
				matched++
			} else {
				not++
			}
		}
	})
	if matched == 0 || not == 0 {
		t.Errorf("%d texts matched, %d did not", matched, not)
	}
}

// TestFirstAnchorIsShown: of several anchors the one that begins first, though another may be found before it.
func TestFirstAnchorIsShown(t *testing.T) {
	c := decisiontest.Rules(byWords("approval", "approval | prior approval + ja"))
	if m := c.Classify("o prior approval ja", 0); m.Text != "prior approval ja" {
		t.Errorf("matched at %q", m.Text)
	}
}

// TestTextAtEveryPlace: what must be decoded or refused in a JSON text is seen wherever it stands in the blocks that a text
// is read in.
func TestTextAtEveryPlace(t *testing.T) {
	p := assumingTransient()
	for _, piece := range []string{"é", "éé", "\u0080", "–", "😀", "\xc3", "\xc3\xff", "\xc3\xc3", "\xc3\xa9\xa9", "\xc2", "\xc1\x81", "\xa9", "\xe2\x80", "\xff",
		"\x00", "\x1f", "\x7f", `"`, `\`, `\n`, `\"`, `\u00e9`, `\u00e`, `\ud83d`, `\\`} {
		for place := range 80 {
			for _, filler := range []string{"a", "é"} {
				v := decision.Value(`"` + strings.Repeat(filler, place) + piece + strings.Repeat(filler, place%17) + `"`)
				want, ok := oracleText(v)
				if !ok || !visible.MatchString(want) {
					want = ""
				}
				if f, rejection := p.Read(decision.Variables{ID: `"CLM-A-1"`, Error: v}); rejection != nil || f.Error != want {
					t.Fatalf("%q is read as %q (%v), want %q", v, f.Error, rejection, want)
				}
			}
		}
	}
}

// TestCodesBehindAccents: an accented letter is the gap before a word of a code, also where the word begins with ſ or ı.
func TestCodesBehindAccents(t *testing.T) {
	c := decisiontest.Rules(decisiontest.Transient("RATE_SIZE"), decisiontest.Transient("RATE_INPUT"))
	checkExamples(t, c, []example{
		{"rateçsize", "RATE_SIZE", "rateçsize"}, {"rateçſize", "RATE_SIZE", "rateçſize"}, {"rateçınput", "RATE_INPUT", "rateçınput"},
		{"rate\u0301ſize", "RATE_SIZE", "rate\u0301ſize"}, {"rateſize", "", ""},
	})
}
