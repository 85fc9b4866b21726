package classify

import (
	"slices"
	"strings"
)

// A number in a text is an HTTP status, or a code of table 38, only if the text around it says so. This file reads that
// text.

// numberKey is a number, or a hundred of them such as 5xx, in one role.
type numberKey struct {
	role   role
	digits string
}

// addNumber adds the evidence that a number in the message is, if it is any.
func (s *search) addNumber(as role, digits string, where span) {
	if matcher, ok := s.numbers[numberKey{as, digits}]; ok {
		s.add(matcher, where, "")
	}
}

// statusMatcher returns the stronger matcher of a status and of its hundred, or none.
func (c *Classifier) statusMatcher(as role, digits string) int {
	best := none
	for _, n := range [...]string{digits, digits[:1] + "xx"} {
		if matcher, ok := c.numbers[numberKey{as, n}]; ok && (best == none || matcher < best) {
			best = matcher
		}
	}
	return best
}

// readNumbers looks at the whole numbers of the message.
func (s *search) readNumbers() {
	eachNumber(s.message, func(from, to int) { s.addNumber(codeRole, s.message[from:to], span{from, to}) })
	eachNumber(s.plain, func(from, to int) {
		digits, where := string(s.plain[from:to]), s.inText(span{from, to})
		switch {
		case len(digits) == 4:
			isCode, isDenial := isTISSCode(s.plain, from, to)
			if isCode {
				s.addNumber(tissRole, digits, where)
			}
			if isDenial {
				s.addNumber(tissRole, digits[:2]+"xx", where)
			}
		case isStatus(s.plain, from, to):
			if last := s.plain[s.latest.from:s.latest.to]; string(last) != digits {
				s.earlier = s.latest
			}
			s.latest = span{from, to}
			if s.status == 0 {
				s.hear(ofStatus[digits])
				s.addStatus(digits, where)
			}
		}
	})
}

// addStatus adds a status found in the text. It counts as a refusal only if nothing else says that the fault passes.
func (s *search) addStatus(digits string, where span) {
	matcher, lost := s.statusMatcher(statusRole, digits), ""
	if matcher == none {
		return
	}
	isPassing := s.strongest().Rank == PassingFault
	if s.matchers[matcher].Rank == Refusal && (isPassing || s.waits()) {
		lost = "a status is a refusal only where it stands alone"
	}
	s.add(matcher, where, lost)
}

// eachNumber calls found with the place of every whole number in s: digits without a digit beside them, and without a
// '.', ',' or '-' that joins them to another number (R3). So 503 is not in "15037", "503.504.111-22" or "1.504,00".
func eachNumber[T string | []byte](s T, found func(from, to int)) {
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			continue
		}
		from := i
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		if !separated(at(s, from-1), at(s, from-2)) && !separated(at(s, i), at(s, i+1)) {
			found(from, i)
		}
	}
}

// separated reports whether a separator beside a number, and the byte beyond it, join the number to another.
func separated(separator, behind byte) bool {
	return (separator == '.' || separator == ',' || separator == '-') && isDigit(behind)
}

// at returns the byte at i, 0 outside s.
func at[T string | []byte](s T, i int) byte {
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNumber(code string) bool {
	return code != "" && strings.Trim(code, "0123456789") == ""
}

// How far around a number the words that explain it may stand, in characters.
const (
	reachBefore = 96
	reachBehind = 24
)

// before and behind return what stands on either side of a place in a plain text.
func before(plain []byte, place int) string { return string(plain[max(0, place-reachBefore):place]) }

func behind(plain []byte, place int) string {
	return string(plain[place:min(len(plain), place+reachBehind)])
}

// lastWord cuts the last word, and the gap behind it, off the end of s.
func lastWord(s string) (rest, word, gap string) {
	end := strings.LastIndexFunc(s, isWord) + 1
	start := strings.LastIndexFunc(s[:end], func(r rune) bool { return !isWord(r) }) + 1
	return s[:start], strings.ReplaceAll(s[start:end], "_", ""), s[end:]
}

// isWord reports whether r belongs to a word of a plain text.
func isWord(r rune) bool { return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_' }

// near reports whether the gap is small enough for the word before it to explain what follows.
func near(gap string) bool { return len(gap) <= len(` = "[`) && !strings.ContainsAny(gap, ".,;!?/%$") }

// isStatus reports whether the whole number plain[from:to] stands like an HTTP status: before its own phrase, alone in
// brackets, after a word for a status, or first in the text and followed by a colon, a dash or nothing.
func isStatus(plain []byte, from, to int) bool {
	if to-from != 3 {
		return false
	}
	next := behind(plain, to)
	phrase := strings.TrimLeft(next, " -:(")
	begins := func(words string) bool { return strings.HasPrefix(phrase, words) }
	if slices.ContainsFunc(lists[string(plain[from:to])], begins) || begins("client error") || begins("server error") {
		return true
	}
	if next != "" && isWord(rune(next[0])) { // 503ms
		return false
	}
	rest := before(plain, from)
	if isBracketed(rest, next) {
		return true
	}
	next = strings.TrimLeft(next, " ")
	if strings.Trim(rest, " ") == "" {
		return next == "" || next[0] == ':' || next[0] == '-'
	}
	firstWord := next[:len(next)-len(strings.TrimLeftFunc(next, isWord))]
	return isAnnounced(rest) && !units[firstWord]
}

// isBracketed reports whether a number is alone in brackets, as in (404). Brackets of a call or an index do not count,
// such as the line in index.php(404).
func isBracketed(rest, next string) bool {
	for _, brackets := range [...]string{"()", "[]"} {
		if outer, ok := strings.CutSuffix(rest, brackets[:1]); ok && strings.HasPrefix(next, brackets[1:]) {
			return outer == "" || !isWord(rune(outer[len(outer)-1]))
		}
	}
	return false
}

// isAnnounced reports whether rest ends in a word for a status.
func isAnnounced(rest string) bool {
	trimmed := strings.TrimRight(rest, " ")
	if slices.ContainsFunc(lists["http versions"], func(v string) bool { return strings.HasSuffix(trimmed, v) }) {
		return true
	}
	rest, word, gap := lastWord(rest)
	for near(gap) && statusFillers[word] {
		rest, word, gap = lastWord(rest)
	}
	return near(gap) && statusWords[word]
}

// isTISSCode reports whether the whole number plain[from:to] is marked as a code of table 38: by its element
// (<codigoGlosa>), by a word for a denial (glosa 1308, glosas 1402 e 1308), or by the table's name. isDenial reports
// whether it may also match a group of codes: only denials and codes marked by the table do.
func isTISSCode(plain []byte, from, to int) (isCode, isDenial bool) {
	if at(plain, to) == '/' && isDigit(at(plain, to+1)) { // such as 1701/2025, a number with its year
		return false, false
	}
	rest, word, gap := lastWord(inTag(strings.TrimSuffix(before(plain, from), "<![cdata[")))
	isOpener := func() bool {
		return near(strings.Replace(gap, ".", "", 1)) && (tissOpeners[word] || tissJoints[word])
	}
	isListed := func() bool { // glosas 1402, 1407 e
		return strings.Trim(gap, " ,") == "" && (tissLists[word] || len(word) == 4 && isNumber(word))
	}
	for isOpener() || isListed() {
		rest, word, gap = lastWord(rest)
	}
	rest, owner, _ := lastWord(rest)
	if word == "38" {
		isOfTable := near(gap) && owner == "tabela"
		return isOfTable, isOfTable
	}
	if tissJoints[owner] {
		_, owner, _ = lastWord(rest)
	}
	isCode = near(gap) && tissElements[word] && !tissUncounted[owner]
	return isCode, isCode && strings.Contains(word, "glosa")
}

// inTag returns s with an opening tag at its end replaced by its bare name, so that "<ans:codigoGlosa xsi:type=…>"
// reads as a word.
func inTag(s string) string {
	open := strings.LastIndexByte(s, '<')
	if open < 0 || !strings.HasSuffix(strings.TrimRight(s, " "), ">") {
		return s
	}
	element, _, _ := strings.Cut(strings.TrimRight(s[open+1:], " >"), " ")
	if strings.HasPrefix(element, "/") {
		return ""
	}
	return s[:open+1] + element[strings.LastIndexByte(element, ':')+1:]
}
