package classify

import (
	"slices"
	"strings"

	"retry-worker/internal/text"
)

// A number in a text is an HTTP status, or a code of table 38, only where the text says so. This file reads what stands
// around it.

// numberRules are the matchers of one number, by what it must be; none where there is none.
type numberRules struct {
	code, beside, status, tiss int
	// group tells that tiss knows the number as one of a hundred.
	group bool
}

// readNumbers looks at the whole numbers of the message.
func (s *search) readNumbers() {
	if len(s.numbers) == 0 {
		return
	}
	eachNumber(s.message, func(from, to int) {
		n, known := s.numbers[s.message[from:to]]
		if !known {
			return
		}
		where := span{from: from, to: to}
		if n.code >= 0 {
			s.add(n.code, where, "")
		}
		if n.status >= 0 && s.status == 0 && isStatus(s.message, from, to) {
			s.addStatus(n.status, where)
		}
		if n.tiss >= 0 && isTISSCode(s.message, from, to, n.group) {
			s.add(n.tiss, where, "")
		}
	})
}

// addStatus takes up a status in the text, which is a refusal only where it stands alone.
func (s *search) addStatus(number int, where span) {
	lost := ""
	if s.matchers[number].rank == Refusal && s.best >= 0 && s.matchers[s.best].rank == PassingFault {
		lost = "a status is a refusal only where it stands alone"
	}
	s.add(number, where, lost)
}

// lastTry returns where the last of several tries begins that the message tells of; 0 where it tells of one.
func (c *Classifier) lastTry(message string) int {
	previous, last := -1, -1
	eachNumber(message, func(from, to int) {
		n, known := c.numbers[message[from:to]]
		if known && (n.code >= 0 || n.status >= 0) && isStatus(message, from, to) {
			if last >= 0 && message[from:to] != message[last:last+3] {
				previous = last
			}
			last = from
		}
	})
	if last < 0 {
		return 0
	}
	if previous < 0 {
		return secondTry(message[:last])
	}
	return tryBetween(message, previous+len("503"), last)
}

var (
	// tryWords between two statuses tell that they are those of two tries, listWords before the first one that several
	// follow.
	tryWords = []string{"tentativa", "attempt", "try", "retr", "depois", "em seguida", "por fim", "ultim", "then", "finally", "last", "agora",
		"now", "->", "=>"}
	listWords = []string{"tentativas", "attempts", "tries", "retries"}
)

// secondTry returns where the last try begins in what stands before a status; 0 where that tells of one.
func secondTry(before string) int {
	lower, last, first := strings.ToLower(before), -1, len(before)
	for _, word := range []string{"tentativa", "attempt"} {
		if at := strings.LastIndex(lower, word); at >= 0 {
			last, first = max(last, at), min(first, strings.Index(lower, word))
		}
	}
	if first >= last || len(lower) != len(before) {
		return 0
	}
	return last
}

// tryBetween returns where the last try begins whose status stands at last, after one that ends at previous.
func tryBetween(message string, previous, last int) int {
	between := strings.ToLower(message[previous:last])
	start := -1
	for _, word := range tryWords {
		start = max(start, strings.LastIndex(between, word))
	}
	if start >= 0 && len(between) == last-previous {
		return previous + start
	}
	before := strings.ToLower(message[:previous])
	if start >= 0 || slices.ContainsFunc(listWords, func(word string) bool { return strings.Contains(before, word) }) {
		return previous
	}
	return 0
}

// eachNumber calls found for every whole number in s, with where it stands: digits with no digit beside them, nor
// one of '.', ',', '-' with a digit behind it (R3). So 503 is not in "15037", "503.504.111-22" or "1.504,00".
func eachNumber(s string, found func(from, to int)) {
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

// separated reports whether a separator beside a number, and the character behind it, make it part of another.
func separated(separator, behind byte) bool {
	return (separator == '.' || separator == ',' || separator == '-') && isDigit(behind)
}

// at returns the byte at i, 0 outside s.
func at(s string, i int) byte {
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNumber(code string) bool {
	return code != "" && strings.Trim(code, "0123456789") == ""
}

// How far a number's mark is looked for before it and behind it, in bytes.
const (
	reachBefore = 96
	reachBehind = 24
)

// before and behind return what stands on either side of a place, in plain letters.
func before(s string, place int) string { return text.Plain(s[max(0, place-reachBefore):place], nil) }

func behind(s string, place int) string {
	return text.Plain(s[place:min(len(s), place+reachBehind)], nil)
}

// lastWord cuts the last word, and the gap behind it, off the end of s.
func lastWord(s string) (rest, word, gap string) {
	end := strings.LastIndexFunc(s, isWord) + 1
	start := strings.LastIndexFunc(s[:end], func(r rune) bool { return !isWord(r) }) + 1
	return s[:start], strings.ReplaceAll(s[start:end], "_", ""), s[end:]
}

// isWord reports whether r belongs to a word of a plain text.
func isWord(r rune) bool { return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_' }

// near reports whether a gap is so small that the word before it speaks of what is behind it.
func near(gap string) bool { return len(gap) <= len(` = "[`) && !strings.ContainsAny(gap, ".,;!?/%$") }

var (
	// statusWords stand before an HTTP status.
	statusWords = set(`http https status statuscode httpstatus httpcode httpstatuscode code codigo errorcode response
		responsecode responsestatus resposta error erro returned returns retornou retorno respondeu devolveu recebido recebeu
		responded got received answered answer`)
	// statusFillers may stand between one of them and the status.
	statusFillers = set("com with was is of de o a um the an")
	// counted are what a number counts or measures that is no status.
	counted = set(`bytes kb mb ms milliseconds milissegundos s seconds segundos min minutes minutos record records registros
		rows linhas items itens guias lotes contas files arquivos times vezes attempts tentativas reais`)
	httpVersions = []string{"http/1.0", "http/1.1", "http/2", "http/2.0", "http/3"}
)

// statusPhrases begin what stands behind an HTTP status (RFC 9110, RFC 6585, and what was usual before them).
var statusPhrases = map[string][]string{
	"400": {"bad request"}, "401": {"unauthorized"}, "403": {"forbidden"}, "404": {"not found"}, "405": {"method not"},
	"406": {"not acceptable"}, "407": {"proxy auth"}, "408": {"request time"}, "409": {"conflict"}, "410": {"gone"},
	"412": {"precondition"}, "413": {"content too", "request entity", "payload too"}, "415": {"unsupported media"},
	"422": {"unprocessable"}, "423": {"locked"}, "425": {"too early"}, "429": {"too many"}, "500": {"internal server"},
	"501": {"not implemented"}, "502": {"bad gateway", "proxy error"}, "503": {"service unav", "service temp", "server unav"},
	"504": {"gateway time"},
}

// isStatus reports whether s[from:to], a whole number, stands where an HTTP status stands: before its own phrase, alone
// in brackets, first in the text and followed by a colon, a dash or nothing, or behind a word for one.
func isStatus(s string, from, to int) bool {
	if to-from != 3 {
		return false
	}
	next := behind(s, to)
	phrase := strings.TrimLeft(next, " -:(")
	for _, begin := range statusPhrases[s[from:to]] {
		if strings.HasPrefix(phrase, begin) {
			return true
		}
	}
	if strings.HasPrefix(phrase, "client error") || strings.HasPrefix(phrase, "server error") {
		return true
	}
	if next != "" && isWord(rune(next[0])) { // 503ms
		return false
	}
	rest := before(s, from)
	if isBracketed(rest, next) {
		return true
	}
	next = strings.TrimLeft(next, " ")
	if strings.Trim(rest, " ") == "" {
		return next == "" || next[0] == ':' || next[0] == '-'
	}
	noun, _, _ := strings.Cut(next, " ")
	return isAnnounced(rest) && !counted[strings.TrimRight(noun, ".,;:)")]
}

// isBracketed reports whether a number is alone in brackets that are not those of a call or an index: (404), but not
// the line of index.php(404).
func isBracketed(rest, next string) bool {
	outer, round := strings.CutSuffix(rest, "(")
	if !round || !strings.HasPrefix(next, ")") {
		var square bool
		if outer, square = strings.CutSuffix(rest, "["); !square || !strings.HasPrefix(next, "]") {
			return false
		}
	}
	return outer == "" || !isWord(rune(outer[len(outer)-1]))
}

// isAnnounced reports whether rest ends in a word for a status.
func isAnnounced(rest string) bool {
	trimmed := strings.TrimRight(rest, " ")
	if slices.ContainsFunc(httpVersions, func(v string) bool { return strings.HasSuffix(trimmed, v) }) {
		return true
	}
	rest, word, gap := lastWord(rest)
	for near(gap) && statusFillers[word] {
		rest, word, gap = lastWord(rest)
	}
	return near(gap) && statusWords[word]
}

var (
	// tissElements hold a code of table 38, groups of codes only where they speak of a denial.
	tissElements = set(`codigoglosa codglosa cdglosa tipoglosa motivoglosa codigomotivoglosa glosa glosas
		codigoerro coderro codigomensagem codigomensagemerro codigonegativa tiss`)
	tissOpeners   = set("codigo codigos cod cd code nr no n numero motivo")
	tissListWords = set("e and")
	// uncounted stand before a denial's amount, and before a denial that was not made.
	uncounted = set("valor total quantidade qtd sem nenhuma nao not no without data")
	tissWords = set("da de do das dos")
)

// isTISSCode reports whether s[from:to], a whole number, is marked as a code of table 38: by its element
// (<codigoGlosa>), by the word for a denial (glosa 1308, glosas 1402 e 1308, código da glosa: 1308), or by the table.
// One of a group is one of a denial only.
func isTISSCode(s string, from, to int, group bool) bool {
	if at(s, to) == '/' && isDigit(at(s, to+1)) { // 1701/2025 is numbered by the year
		return false
	}
	rest, word, gap := lastWord(inTag(withoutList(before(s, from))))
	for near(strings.Replace(gap, ".", "", 1)) && (tissOpeners[word] || tissWords[word]) {
		rest, word, gap = lastWord(rest)
	}
	if !near(gap) {
		return false
	}
	if word == "38" {
		_, noun, _ := lastWord(rest)
		return noun == "tabela"
	}
	if !tissElements[word] || group && !strings.Contains(word, "glosa") {
		return false
	}
	rest, owner, _ := lastWord(rest)
	if tissWords[owner] {
		_, owner, _ = lastWord(rest)
	}
	return !uncounted[owner]
}

// withoutList returns s without the codes at its end that are listed before the one behind it: glosas 1402, 1407 e.
func withoutList(s string) string {
	for {
		rest, word, gap := lastWord(s)
		if len(word) != 4 && !tissListWords[word] || word == "" || !tissListWords[word] && !isNumber(word) || strings.Trim(gap, " ,") != "" {
			return s
		}
		s = rest
	}
}

// inTag returns s with the opening tag at its end, if there is one, as its bare name: "<ans:codigoGlosa xsi:type=…>"
// is a word then.
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
