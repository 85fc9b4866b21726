// Package spelling finds the known name nearest to a mistyped one.
package spelling

import "strings"

// Nearest returns the known text from which text differs in case only or by two bytes at most, and not by all of it;
// empty if there is none.
func Nearest(text string, known []string) string {
	best, least := "", 3
	if len(text) > 80 {
		return ""
	}
	for _, k := range known {
		if d := Distance(strings.ToLower(text), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// Distance returns how many bytes must be put in, taken out or changed to make b of a (Levenshtein).
func Distance(a, b string) int {
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
