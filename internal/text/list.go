package text

import "strings"

// Or returns the words as a sentence lists a choice of them: "a, b or c".
func Or[T ~string](words ...T) string { return list(words, " or ") }

// And returns the words as a sentence lists all of them: "a, b and c".
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
