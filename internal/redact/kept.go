package redact

import "strings"

// What is never taken.

const (
	maxHash = 128 // digits: SHA-512
	maxDate = 32  // characters
)

// matches returns where what is at i ends if it is as pattern says, in which 0 is a digit, x a hexadecimal one, - one
// of "-/.", and anything else itself; 0 where it is not.
func (r *reader) matches(i int, pattern string) int {
	for j := range len(pattern) {
		c := r.char(i + j)
		switch p := pattern[j]; {
		case p == '0' && looks[c] == isDigit, p == 'x' && isHex(c), p == '-' && isOneOf(c, "-/."), p == c:
		default:
			return 0
		}
	}
	return i + len(pattern)
}

// identifierEnd returns the end of the UUID or hash that begins at i; 0 where none does.
func (r *reader) identifierEnd(i int) int {
	if isAlnum(r.char(i - 1)) {
		return 0
	}
	hex, letters := 0, false
	for hex <= maxHash && isHex(r.char(i+hex)) {
		letters = letters || looks[r.char(i+hex)] == isLetter
		hex++
	}
	switch end := i + hex; hex {
	case 8:
		if end = r.matches(i, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"); end > 0 && !r.goesOn(end) {
			return end
		}
	case 16, 24, 32, 40, 48, 56, 64, 96, maxHash:
		if letters && !r.goesOn(end) {
			return end
		}
	}
	return 0
}

func isHex(c byte) bool { return looks[c] == isDigit || 'a' <= lower(c) && lower(c) <= 'f' }

// goesOn reports whether more of an identifier, or a number's rest, stands at i behind it.
func (r *reader) goesOn(i int) bool {
	return isAlnum(r.char(i)) || r.char(i) == '.' && looks[r.char(i+1)] == isDigit
}

// isPunctuated reports whether a CPF as it is printed stands at i.
func (r *reader) isPunctuated(i int) bool {
	return r.matches(i, "000.000.000-00") > 0 && r.char(i+11) == '-' && looks[r.char(i+14)] != isDigit
}

// claimEnd returns the end of the claim's id (CLM-001-1234567890) that goes on at i, whatever its digits are.
func (r *reader) claimEnd(i int) int {
	lettered := true // a letter stands in this group: only then may a period or slash be part of the id
	for ; ; i++ {
		switch c := r.char(i); {
		case looks[c] == isLetter:
			lettered = true
		case looks[c] == isDigit:
		case (c == '-' || c == '_') && !r.isPunctuated(i+1):
			lettered = false
		case (c == '.' || c == '/') && lettered && isAlnum(r.char(i+1)):
			lettered = false
		default:
			return i
		}
	}
}

// keptEnd returns the end of the protocol number at i: groups with one of "-./_" between them that begin with a digit.
func (r *reader) keptEnd(i int) int {
	for ; ; i++ {
		c := r.char(i)
		if !isAlnum(c) && (!isOneOf(c, "-./_") || looks[r.char(i+1)] != isDigit || r.isPunctuated(i+1)) {
			return i
		}
	}
}

// instantEnd returns the end of the date, the time or both at i, RFC 3339 among them; 0 where there is none.
func (r *reader) instantEnd(i int) int {
	end := r.dateEnd(i)
	if end == 0 {
		return r.timeEnd(i, "00:00:00")
	}
	if !isOneOf(r.char(end), "Tt _") {
		return end
	}
	return max(end, r.timeEnd(end+1, "00:00:00"), r.timeEnd(end+1, "00:00"))
}

// dates are ways to write one.
var dates = strings.Fields("0000-00-00 0000-0-00 0000-00-0 0000-0-0 00-00-0000 0-00-0000 00-0-0000 0-0-0000")

// dateEnd returns the end of the date at i; 0 where there is none.
func (r *reader) dateEnd(i int) int {
	for _, pattern := range dates {
		end := r.matches(i, pattern)
		if end == 0 || looks[r.char(end)] == isDigit {
			continue
		}
		first := i + strings.IndexByte(pattern, '-')
		second := i + strings.LastIndexByte(pattern, '-')
		a, b, c := value(r.Chars[i:first]), value(r.Chars[first+1:second]), value(r.Chars[second+1:end])
		isDate := isYear(a) && isDay(b, c) || isYear(c) && (isDay(a, b) || isDay(b, a))
		if isDate && r.Chars[first] == r.Chars[second] {
			return end
		}
	}
	return 0
}

// timeEnd returns the end of the time at i that is written as pattern, with its fraction and zone; 0 where none is.
// Without a date before it it has seconds, for in "10:11 91234-5678" the minute may be an area code.
func (r *reader) timeEnd(i int, pattern string) int {
	end := r.matches(i, pattern)
	if end == 0 || looks[r.char(end)] == isDigit || r.Chars[i] > '2' || r.Chars[i+3] > '5' || r.Chars[end-2] > '6' {
		return 0
	}
	if fraction := r.run(end+1, isDigit); isOneOf(r.char(end), ".,") && fraction > end+1 {
		end = fraction
	}
	switch r.char(end) {
	case 'Z':
		return end + 1
	case '+', '-':
		return max(end, r.matches(end+1, "00"), r.matches(end+1, "00:00"), r.matches(end+1, "0000"))
	}
	return end
}

// writtenDate is "12 de março de 1980", "12-Mar-1980" and the arguments of a date's constructor.
var writtenDate = regular(`(?:0?[1-9]|[12]\d|3[01])(?:-| (?:de )?)<L>{3,9}(?:-| (?:de )?)(?:19|20)\d\d\b|` +
	`(?:19|20)\d\d, ?\d\d?, ?\d\d?\b`)

// writtenDateEnd returns the end of the written date at i; 0 where there is none.
func (r *reader) writtenDateEnd(i int) int {
	if date := writtenDate.Find(r.Chars[i:min(len(r.Chars), i+maxDate)]); date != nil {
		return i + len(date)
	}
	return 0
}
