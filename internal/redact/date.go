package redact

import "strings"

// instantEnd is the end of the date, the time or both at s[i:], RFC 3339 among them; 0 where there is none.
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
		value = value*10 + int(s[i]-'0')
		if value > 1e6 {
			value = 1e6
		}
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
		case isLetter(r):
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
