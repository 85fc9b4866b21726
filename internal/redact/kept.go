package redact

import "regexp"

// This file reads what is never taken.

const longestHash = 128 // hexadecimal digits, of SHA-512

// identifierEnd returns the end of the UUID or hash that begins at i; 0 where none does.
func (r *reader) identifierEnd(i int) int {
	if isAlnum(r.char(i-1)) || !isHex(r.char(i+6)) || !isHex(r.char(i+7)) { // most words
		return 0
	}
	v := identifier.Find(r.ahead(i, longestHash))
	end := i + len(v)
	isOver := !isAlnum(r.char(end)) && !(r.char(end) == '.' && looks[r.char(end+1)] == isDigit)
	if len(r.digitsOf(v)) == len(v) || !isOver {
		return 0
	}
	return end
}

func isHex(c byte) bool { return looks[c] == isDigit || 'a' <= lower(c) && lower(c) <= 'f' }

var (
	identifier, punctuated  = pattern("identifier"), pattern("punctuated")
	claimRest, documentRest = pattern("claimRest"), pattern("documentRest")
	instant, writtenDate    = pattern("instant"), pattern("writtenDate")
)

// isPunctuated reports whether a CPF with its punctuation stands at i: 000.000.000-00.
func (r *reader) isPunctuated(i int) bool {
	return r.char(i+3) == '.' && punctuated.Match(r.ahead(i, len("000.000.000-00 ")))
}

// keptEnd returns the end of what has that form at i. A CPF with its punctuation ends it, other digits do not; a sign
// that resembles no ASCII character, which a form takes for a letter, ends it too.
func (r *reader) keptEnd(i int, form *regexp.Regexp) int {
	end := i + len(form.Find(r.ahead(i, maxNoted)))
	for at := i; at < end; at++ {
		c := r.Chars[at]
		if is(c, "-./_") && r.isPunctuated(at+1) || c >= 0x80 && looks[c] != isLetter {
			return at
		}
	}
	return end
}

const maxInstant = 48 // characters

// instantEnd returns the end of the date, the time or both at i; i where there is none.
func (r *reader) instantEnd(i int) int { return i + len(instant.Find(r.ahead(i, maxInstant))) }

// birthEnd returns the end of the date that begins with the token i, in figures or written; 0 where none does.
func (r *reader) birthEnd(i int) int {
	start := r.start(i)
	if end := r.instantEnd(start); r.classes[i] == date && end > start {
		return end
	} else if v := writtenDate.Find(r.ahead(start, maxInstant)); v != nil {
		return start + len(v)
	}
	return 0
}
