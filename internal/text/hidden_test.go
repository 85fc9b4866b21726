package text_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"retry-worker/internal/text"
)

// Every character there is stays itself, none that acts stands as it is, and what is no character becomes one.
func TestInertJSON(t *testing.T) {
	if got := string(text.InertJSON([]byte("[\"a\xff\"]"))); got != "[\"a\ufffd\"]" {
		t.Errorf("no UTF-8 becomes %q", got)
	}
	const step = 512
	for first := rune(0); first <= unicode.MaxRune; first += step {
		var all []rune
		for r := first; r < first+step && r <= unicode.MaxRune; r++ {
			if utf8.ValidRune(r) && r >= ' ' && r != '"' && r != '\\' { // the others are escaped in every JSON
				all = append(all, r)
			}
		}
		inert := text.InertJSON([]byte(`"` + string(all) + `"`))
		var back string
		if err := json.Unmarshal(inert, &back); err != nil || back != string(all) {
			t.Errorf("from %U on: another text, %v", first, err)
		}
		acts := func(r rune) bool {
			return unicode.IsControl(r) || strings.ContainsRune("<>&", r) ||
				r <= 0xffff && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
		}
		if at := strings.IndexFunc(string(inert), acts); at >= 0 {
			t.Errorf("from %U on: something acts at %d", first, at)
		}
	}
}
