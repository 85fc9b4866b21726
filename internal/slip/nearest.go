package slip

import "strings"

// Nearest of the known texts, if text differs from it in case only or by no more than a slip (two bytes, and not all of
// it); empty if none does.
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
