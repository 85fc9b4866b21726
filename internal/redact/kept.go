package redact

import "regexp"

// This file reads what is never taken.

const maxHash = 128 // hexadecimal digits of SHA-512

// identifierEnd returns the end of the UUID or hash that begins at i; 0 where none does.
func (r *reader) identifierEnd(i int) int {
	if isAlnum(r.char(i - 1)) {
		return 0
	}
	end, letters := i, false
	for ; end-i <= maxHash && isHex(r.char(end)); end++ {
		letters = letters || looks[r.Chars[end]] == isLetter
	}
	switch end - i {
	case 8:
		end, letters = i+len(uuid.Find(r.ahead(i, 36))), true
	case 16, 24, 32, 40, 48, 56, 64, 96, maxHash:
	default:
		return 0
	}
	if !letters || isAlnum(r.char(end)) || r.char(end) == '.' && looks[r.char(end+1)] == isDigit {
		return 0
	}
	return end
}

func isHex(c byte) bool { return looks[c] == isDigit || 'a' <= lower(c) && lower(c) <= 'f' }

var (
	uuid       = regular(`[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`)
	punctuated = regular(`\d{3}\.\d{3}\.\d{3}-\d\d(?:\D|$)`)
)

// isPunctuated reports whether a CPF with its punctuation stands at i: 000.000.000-00.
func (r *reader) isPunctuated(i int) bool {
	return r.char(i+3) == '.' && punctuated.Match(r.ahead(i, len("000.000.000-00 ")))
}

// Forms of what stays: the rest of a claim's id (CLM-001-1234567890), where a period or slash is part of it only behind
// a letter, and a document's number.
var (
	claimForm    = regular(`(?:[-_]|\d+|\d*<L>+(?:[./][\dA-Za-z\x{fffd}])?)*`)
	documentForm = regular(`(?:\d|<L>|[-./_]\d)*`)
)

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

// yearFirst and yearLast are dates with or without a time, RFC 3339 among them. clock is a time without a date, with
// seconds: in "10:11 91234-5678" the 11 may be an area code.
var yearFirst, yearLast, clock = func() (first, last, clock *regexp.Regexp) {
	const year, day, month = `(?:19|20)\d\d`, `(?:[12]\d|3[01]|0?[1-9])`, `(?:1[0-2]|0?[1-9])`
	const minute, second, zone = `[0-2]\d:[0-5]\d`, `:[0-6]\d(?:[.,]\d+)?`, `(?:Z|[+-]\d\d(?::?\d\d)?)?`
	of := func(a, b, c string) string {
		return a + `(?:-` + b + `-|/` + b + `/|\.` + b + `\.)` + c +
			`(?:[Tt _]` + minute + `(?:` + second + `)?` + zone + `)?`
	}
	return regular(of(year, month, day)), regular(of(day, month, year) + "|" + of(month, day, year)),
		regular(minute + second + zone)
}()

// instantEnd returns the end of the date, the time or both at i; i where there is none.
func (r *reader) instantEnd(i int) int {
	form := yearLast
	if r.char(i+2) == ':' {
		form = clock
	} else if looks[r.char(i+2)] == isDigit {
		form = yearFirst
	}
	return i + len(form.Find(r.ahead(i, maxInstant)))
}

// writtenDate is a date with a word for the month, "12 de março de 1980", "12-Mar-1980" or "Mar 3, 1951", or the
// arguments of a date's constructor.
var writtenDate = regular(`(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|o)?(?:[-/]| (?:d[eo] |of )?)?<L>{3,9}(?:[-/,]| ` +
	`)?(?:d[eo] |,? ?)(?:19|20)?\d\d\b|(?:19|20)\d\d, ?\d\d?, ?\d\d?\b|` +
	`(?i:jan|feb|fev|ma[ryi]|apr|abr|ju[nl]|au?go?|sep|set|oct|out|nov|de[cz])<L>*[. ]{1,2}\d\d?(?:st|nd|rd|th)?,? ` +
	`(?:19|20)\d\d\b`)

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
