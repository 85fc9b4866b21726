package redact

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What is never taken, recognised as it is written in ASCII.

var (
	punctuated = regexp.MustCompile(`^\d{3}\.\d{3}\.\d{3}-\d{2}(?:\D|$)`)
	uuid       = regexp.MustCompile(`^[[:xdigit:]]{8}-(?:[[:xdigit:]]{4}-){3}[[:xdigit:]]{12}`)
)

// isPunctuated recognises 000.000.000-00 at the start of s: nothing but a CPF is written so.
func isPunctuated(s string) bool { return punctuated.MatchString(s) }

// isPunctuated is the same of a cluster, in whatever characters.
func (c *cluster) isPunctuated() bool {
	return c.fit(grouped, 0) && c.between(0, 3) == dot && c.groups[3].before == dash &&
		c.groups[1].gap+c.groups[2].gap+c.groups[3].gap == 3
}

// amount returns how many groups an amount has: 1.504,00.
func (c *cluster) amount() int {
	n := 1
	for n < c.n && c.groups[n].gap == 1 && c.groups[n].before&^(dot|comma) == 0 {
		n++
	}
	return n
}

// isKey recognises the length of an engine's key (16 to 19 digits: the partition stands in the bits from
// 51 on) and of an instant in milliseconds.
func (c *cluster) isKey() bool { return 13 <= c.count(1) && c.count(1) <= 19 }

// address returns how many groups the IPv4 address has that begins with the group `from`; 0 for none.
func (c *cluster) address(from int) int {
	const octets = 4
	end := from + octets
	if c.n < end || c.n > end && c.groups[end].before == dot && c.groups[end].gap == 1 {
		return 0
	}
	for n := from; n < end; n++ {
		if g := &c.groups[n]; n > from && (g.before != dot || g.gap != 1) || !isOctet(c.span(n, n+1)) {
			return 0
		}
	}
	return octets
}

func isOctet(d []byte) bool {
	return len(d) <= 3 && value(d) <= 255 && (len(d) == 1 || d[0] != 0)
}

var cnpjForms = ways(none, byForm, odd, "2-3-3-4-2 8-4-2")

// company returns how many groups the CNPJ has that begins the cluster, a company's number.
func (c *cluster) company() int {
	for _, f := range cnpjForms {
		n := len(f.lengths)
		if c.fit(&f, 0) && (c.groups[n-2].before == slash || isCNPJ(c.span(0, n))) {
			return n
		}
	}
	return 0
}

// claimEnd returns the end of the claim's id that goes on at i.
func claimEnd(s string, i int) int {
	lettered := true // a letter stands in this group: only then may a period or slash be part of the id
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case classes[c] == letter:
			lettered = true
		case classes[c] == digit:
		case c == '-', c == '_':
			if isPunctuated(s[i+1:]) {
				return i
			}
			lettered = false
		case (c == '.' || c == '/') && lettered && i+1 < len(s) && (classes[s[i+1]] == letter || classes[s[i+1]] == digit):
			lettered = false
		default:
			return i
		}
	}
	return i
}

// keptEnd returns the end of the protocol number at i, a digit: groups with one of "-./_" between them that
// begin with a digit.
func keptEnd(s string, i int) int {
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case classes[c] == letter, classes[c] == digit:
		case strings.IndexByte("-./_", c) >= 0 && i+1 < len(s) && classes[s[i+1]] == digit && !isPunctuated(s[i+1:]):
		default:
			return i
		}
	}
	return i
}

const (
	uuidSize = 36
	maxHash  = 128 // SHA-512
)

// identifierEnd returns the end of the UUID or hash of which s[start:end] is a part; 0 where it is of none.
func identifierEnd(s string, start, end int) int {
	for i := start; start-i < uuidSize; i-- {
		if !precedes(s[:i]) {
			if isUUID(s[i:]) {
				return i + uuidSize
			}
			if i == 0 || s[i-1] != '-' {
				break
			}
		}
	}
	return hashEnd(s, start, end)
}

func isUUID(s string) bool { return uuid.MatchString(s) && !goesOn(s[uuidSize:]) }

// goesOn reports whether s, behind an identifier, begins with more of it, or with a number's rest.
func goesOn(s string) bool {
	r, w := seenAt(s, 0)
	if r == '.' {
		r, _ = seenAt(s, w)
		return isDigit(r)
	}
	return w > 0 && (isDigit(r) || unicode.IsLetter(r))
}

// precedes reports whether s, before an identifier, ends with more of it.
func precedes(s string) bool {
	r, w := utf8.DecodeLastRuneInString(s)
	r = logical(r)
	return w > 0 && (r == unseen || isDigit(r) || unicode.IsLetter(r))
}

// hashEnd returns the same for a run of hexadecimal digits as long as a hash, with a letter in it.
func hashEnd(s string, start, end int) int {
	for start > 0 && end-start <= maxHash && hexValue(s[start-1]) < 16 {
		start--
	}
	for end < len(s) && end-start <= maxHash && hexValue(s[end]) < 16 {
		end++
	}
	run := s[start:end]
	switch len(run) {
	case 16, 24, 32, 40, 48, 56, 64, 96, maxHash:
	default:
		return 0
	}
	if strings.Trim(run, "0123456789abcdefABCDEF") != "" || !strings.ContainsAny(run, "abcdefABCDEF") ||
		goesOn(s[end:]) || precedes(s[:start]) {
		return 0
	}
	return end
}

// instantEnd returns the end of the date, the time or both at s[i:], RFC 3339 among them; 0 where there is none.
func instantEnd(s string, i int) int {
	end := dateEnd(s, i)
	if end == 0 {
		return timeEnd(s, i, true)
	}
	if end+1 < len(s) && strings.IndexByte("Tt _", s[end]) >= 0 {
		if t := timeEnd(s, end+1, false); t > 0 {
			return t
		}
	}
	return end
}

// dateEnd reads 2025-01-12 and 12/01/2025, with one of "-/." twice.
func dateEnd(s string, i int) int {
	a, i1 := figures(s, i)
	b, i2 := behind(s, i1, "-/.")
	c, i3 := behind(s, i2, "-/.")
	if i2 == 0 || i3 == 0 || s[i1] != s[i2] || i2-i1 > 3 {
		return 0
	}
	switch {
	case i1-i == 4 && i3-i2 <= 3 && isYear(a) && isDay(b, c):
		return i3
	case i1-i <= 2 && i3-i2 == 5 && isYear(c) && (isDay(b, a) || isDay(a, b)):
		return i3
	}
	return 0
}

// timeEnd reads 10:40:00, a fraction down to nanoseconds, and a zone; without a date before it exact,
// for in "10:11 91234-5678" the minute may be an area code.
func timeEnd(s string, i int, exact bool) int {
	hour, i1 := figures(s, i)
	minute, i2 := behind(s, i1, ":")
	if i1-i != 2 || i2-i1 != 3 || hour > 23 || minute > 59 {
		return 0
	}
	second, i3 := behind(s, i2, ":")
	if i3-i2 != 3 || second > 60 {
		if exact {
			return 0
		}
		return zoneEnd(s, i2)
	}
	if _, i4 := behind(s, i3, ".,"); i4 > 0 && i4-i3 <= 10 {
		i3 = i4
	}
	return zoneEnd(s, i3)
}

func zoneEnd(s string, i int) int {
	if strings.HasPrefix(s[i:], "Z") {
		return i + 1
	}
	if _, end := behind(s, i, "+-"); end-i == 5 || end-i == 3 {
		if _, minutes := behind(s, end, ":"); end-i == 3 && minutes-end == 3 {
			return minutes
		}
		return end
	}
	return i
}

// figures reads ASCII digits: their value, as far as it is small, and their end.
func figures(s string, i int) (value, end int) {
	for i < len(s) && classes[s[i]] == digit {
		value = min(value*10+int(s[i]-'0'), 1e6)
		i++
	}
	return value, i
}

// behind reads the digits behind one of signs at s[i]; its end is 0 where there are none.
func behind(s string, i int, signs string) (value, end int) {
	if i == 0 || i+1 >= len(s) || strings.IndexByte(signs, s[i]) < 0 || classes[s[i+1]] != digit {
		return 0, 0
	}
	return figures(s, i+1)
}

// writtenDateEnd reads "12 de março de 1980" and "12-Mar-1980"; 0 where there is none.
func writtenDateEnd(s string, i int) int {
	day, i := figures(s, i)
	month, end := wordsOf(s, i)
	year, last := figures(s, end)
	if day == 0 || day > 31 || month == 0 || last-end != 4 || !isYear(year) {
		return 0
	}
	return last
}

// wordsOf passes over the blanks and up to three words at s[i:].
func wordsOf(s string, i int) (words, end int) {
	for words <= 3 && i < len(s) {
		r, w := charAt(s, i)
		switch {
		case unicode.IsLetter(r):
			i = wordAt(s, i).end
			words++
		case r == ' ' || r == '-' || r == '/' || r == unseen:
			i += w
		default:
			return words, i
		}
	}
	return words, i
}
