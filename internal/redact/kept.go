package redact

// What is never taken.

const (
	uuidSize = 36
	maxHash  = 128 // SHA-512
)

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
		if r.isUUID(i) && !r.goesOn(i+uuidSize) {
			return i + uuidSize
		}
	case 16, 24, 32, 40, 48, 56, 64, 96, maxHash:
		if letters && !r.goesOn(end) {
			return end
		}
	}
	return 0
}

func (r *reader) isUUID(i int) bool {
	for j := range uuidSize {
		c := r.char(i + j)
		if isHyphen := j == 8 || j == 13 || j == 18 || j == 23; isHyphen && c != '-' || !isHyphen && !isHex(c) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool { return looks[c] == isDigit || 'a' <= lower(c) && lower(c) <= 'f' }

// goesOn reports whether more of an identifier, or a number's rest, stands at i behind it.
func (r *reader) goesOn(i int) bool {
	return isAlnum(r.char(i)) || r.char(i) == '.' && looks[r.char(i+1)] == isDigit
}

// isPunctuated reports whether 000.000.000-00 stands at i.
func (r *reader) isPunctuated(i int) bool {
	const pattern = "000.000.000-00"
	for j := range pattern {
		if c := r.char(i + j); pattern[j] != c && (pattern[j] != '0' || looks[c] != isDigit) {
			return false
		}
	}
	return looks[r.char(i+len(pattern))] != isDigit
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
		return r.timeEnd(i, true)
	}
	if isOneOf(r.char(end), "Tt _") {
		if t := r.timeEnd(end+1, false); t > 0 {
			return t
		}
	}
	return end
}

// dateEnd reads 2025-01-12 and 12/01/2025, with one of "-/." twice.
func (r *reader) dateEnd(i int) int {
	a, i1 := r.figures(i)
	b, i2 := r.figuresBehind(i1, "-/.")
	c, i3 := r.figuresBehind(i2, "-/.")
	if i2 == 0 || i3 == 0 || r.Chars[i1] != r.Chars[i2] || i2-i1 > 3 {
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
func (r *reader) timeEnd(i int, exact bool) int {
	hour, i1 := r.figures(i)
	minute, i2 := r.figuresBehind(i1, ":")
	if i1-i != 2 || i2-i1 != 3 || hour > 23 || minute > 59 {
		return 0
	}
	second, i3 := r.figuresBehind(i2, ":")
	if i3-i2 != 3 || second > 60 {
		if exact {
			return 0
		}
		return r.zoneEnd(i2)
	}
	if _, i4 := r.figuresBehind(i3, ".,"); i4 > 0 && i4-i3 <= 10 {
		i3 = i4
	}
	return r.zoneEnd(i3)
}

func (r *reader) zoneEnd(i int) int {
	if r.char(i) == 'Z' {
		return i + 1
	}
	if _, end := r.figuresBehind(i, "+-"); end-i == 5 || end-i == 3 {
		if _, minutes := r.figuresBehind(end, ":"); end-i == 3 && minutes-end == 3 {
			return minutes
		}
		return end
	}
	return i
}

// figures returns the value of the digits at i, as far as it is small, and their end.
func (r *reader) figures(i int) (int, int) {
	end := r.run(i, isDigit)
	return value(r.Chars[i:end]), end
}

// figuresBehind reads the digits behind one of signs at i; its end is 0 where there are none.
func (r *reader) figuresBehind(i int, signs string) (int, int) {
	if i == 0 || !isOneOf(r.char(i), signs) || looks[r.char(i+1)] != isDigit {
		return 0, 0
	}
	return r.figures(i + 1)
}

// writtenDateEnd reads "12 de março de 1980" and "12-Mar-1980", which begin with the token i; 0 where there is none.
func (r *reader) writtenDateEnd(i int) int {
	j := i + 1
	for ; j < len(r.tokens) && r.tokens[j].form == word && j-i <= 3; j++ {
		if r.tokens[j].gap&^(dash|other) != 0 {
			return 0
		}
	}
	if j == i+1 || j >= len(r.tokens) || r.tokens[j].form != number || r.tokens[j].size() != 4 {
		return 0
	}
	day, year := value(r.Chars[r.tokens[i].start:r.tokens[i].end]), value(r.Chars[r.tokens[j].start:r.tokens[j].end])
	if day == 0 || day > 31 || !isYear(year) {
		return 0
	}
	return int(r.tokens[j].end)
}
