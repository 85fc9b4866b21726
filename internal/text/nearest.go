package text

import "strings"

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
