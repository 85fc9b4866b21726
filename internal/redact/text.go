package redact

import (
	"math"
	"strings"
	"unicode/utf8"

	"retry-worker/internal/text"
)

const ellipsis = "…"

// Text returns s without personal data: a placeholder that names the kind stands for each datum. See the package
// comment for what is taken and what never is. Text(Text(s)) is Text(s); it is valid UTF-8 if s is; it
// takes time in proportion to len(s).
func Text(s string) string {
	r := readers.Get().(*reader)
	for range maxPasses { // what comes out is read again until nothing is found in it
		if r.read(s); len(r.edits) == 0 {
			break
		}
		s = r.apply()
	}
	r.in = ""
	if cap(r.Chars) <= maxKept {
		readers.Put(r)
	}
	return s
}

// Line is Text(s) as one line of at most max bytes for a sink that holds lines: a log field, an incident's message.
// It is inert, as text.Inert makes it. What is too long is cut at the end of a character, never within
// a placeholder, and ends in "…"; where not even that fits, nothing is left. The cut comes after the redaction, so no
// part of a datum is left before it. Of a long s only the beginning is read.
func Line(s string, max int) string {
	const (
		ahead = 1 << 15 // bytes that are read beyond those that may be needed
		torn  = 1 << 10 // at the end of what was read, where half a datum may stand
	)
	if max <= 0 {
		return ""
	}
	if max > math.MaxInt/8 || len(s) <= 4*max+ahead {
		return cut(text.Inert(Text(s)), max, false)
	}
	begin := Text(s[:4*max+ahead])
	return cut(text.Inert(begin[:len(begin)-min(len(begin), torn)]), max, true)
}

// HoldsOwn reports whether s may hold a secret of this program's own: a token of people, or of a webhook.
func HoldsOwn(s string) bool {
	s = strings.ToLower(s)
	return strings.Contains(s, "rwt_") || strings.Contains(s, "whsec_")
}

// WithoutKinds returns s, which Text or Line made, with # in place of each placeholder: a datum's kind may be a matter
// of its digits.
func WithoutKinds(s string) string { return anonymous.Replace(s) }

var anonymous = func() *strings.Replacer {
	var pairs []string
	for _, k := range marked {
		pairs = append(pairs, k.placeholder, "#")
	}
	return strings.NewReplacer(pairs...)
}()

// cut shortens s to max bytes. more says that more of it was left out before.
func cut(s string, max int, more bool) string {
	if len(s) <= max && !more {
		return s
	}
	end := min(len(s), max-len(ellipsis))
	if end < 0 {
		return ""
	}
	for 0 < end && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	if open := strings.LastIndexByte(s[:end], '['); open >= 0 {
		for _, k := range marked {
			if strings.HasPrefix(s[open:], k.placeholder) && open+len(k.placeholder) > end {
				end = open
			}
		}
	}
	return s[:end] + ellipsis
}
