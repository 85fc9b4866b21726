package text

import (
	"cmp"
	"strings"
	"unicode"
)

// Or joins words as alternatives in a sentence: "a, b or c".
func Or[T ~string](words ...T) string { return list(words, " or ") }

// And joins words as a list in a sentence: "a, b and c".
func And[T ~string](words ...T) string { return list(words, " and ") }

func list[T ~string](words []T, last string) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(last)
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// Apart returns a name such as forceRetry in lower case, with a text before each word that began with a capital letter.
func Apart(name, before string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteString(before)
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Nearest returns the known text that was probably meant by text, or "". First choice is the one with the fewest
// different bytes, regardless of case: at most two, or an eighth of text. Otherwise it is the first of which one is a
// prefix of the other and at least half as long.
func Nearest(text string, known []string) string {
	best, least := "", max(2, len(text)/8)+1
	if len(text) > 80 {
		return ""
	}
	for _, k := range known {
		if d := distance(strings.ToLower(text), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	if best != "" {
		return best
	}
	for _, k := range known {
		if short, long := min(len(text), len(k)), max(len(text), len(k)); 2*short >= long && text[:short] == k[:short] {
			return k
		}
	}
	return ""
}

// distance returns how many bytes must be inserted, removed or changed to turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Translated is a text for people that may differ by language.
type Translated struct {
	// Portuguese is also the text for programs.
	Portuguese string `yaml:"pt-BR"`
	// English is empty if it is the same as Portuguese.
	English string `yaml:"en"`
}

// In returns the text in a language, by its BCP 47 tag.
func (t Translated) In(language string) string {
	if language == "en" {
		return cmp.Or(t.English, t.Portuguese)
	}
	return t.Portuguese
}

// String returns the text for programs.
func (t Translated) String() string { return t.Portuguese }

// UnmarshalYAML reads a plain text, or a mapping from languages to texts.
func (t *Translated) UnmarshalYAML(read func(into any) error) error {
	if read(&t.Portuguese) == nil {
		return nil
	}
	type languages Translated
	return read((*languages)(t))
}
