package text

import "strings"

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
