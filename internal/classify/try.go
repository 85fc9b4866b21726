package classify

import (
	"bytes"
	"slices"
	"strings"
)

// This file finds the part of a message that tells of the last try.

// laterTries lists the phrases that announce a second or later try: tentativa 2, second attempt.
func laterTries() []string {
	var all []string
	for _, try := range lists["try"] {
		for _, number := range strings.Fields("2 3 4 5 6 7 8 9") {
			all = append(all, try+" "+number, number+" "+try)
		}
		for _, ordinal := range lists["ordinals"] {
			all = append(all, ordinal+" "+try)
		}
	}
	return all
}

// lastTry returns where in plain the last of several tries begins; 0 if the message tells of only one.
func (s *search) lastTry() int {
	if s.earlier.to == 0 {
		return s.laterTry
	}
	between := string(s.plain[s.earlier.to:s.latest.from])
	start := -1
	for _, word := range lists["next try"] {
		start = max(start, strings.LastIndex(between, word))
	}
	isBefore := func(word string) bool { return bytes.Contains(s.plain[:s.earlier.to], []byte(word)) }
	if start < 0 && !slices.ContainsFunc(lists["several tries"], isBefore) {
		return s.laterTry
	}
	return max(s.laterTry, s.earlier.to+max(0, start))
}
