package decision

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A number in a text is an HTTP status, or a code of table 38, only where the text says so. This file reads what stands
// around it.

// How far a number's mark is looked for before it and behind it, in bytes.
const (
	reachBefore = 96
	reachBehind = 24
)

// before and behind are what stands on either side of a place in text, in its plain form.
func before(text string, place int) string {
	return plainForm.of(text[max(0, place-reachBefore):place])
}

func behind(text string, place int) string {
	return plainForm.of(text[place:min(len(text), place+reachBehind)])
}

// lastWord cuts the last word, and the gap behind it, off the end of s.
func lastWord(s string) (rest, word, gap string) {
	end := strings.LastIndexFunc(s, isWord) + 1
	start := strings.LastIndexFunc(s[:end], func(r rune) bool { return !isWord(r) }) + 1
	return s[:start], s[start:end], s[end:]
}

// isWord tells whether r belongs to a word of a plain text.
func isWord(r rune) bool { return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_' }

// near tells whether a gap is so small that the word before it speaks of what is behind it. A full stop or a comma is
// not, unless the word is an abbreviation.
func near(gap string) bool { return len(gap) <= len(` = "[`) && !strings.ContainsAny(gap, ".,;!?/%$") }

func nearAbbreviation(gap string) bool { return near(strings.Replace(gap, ".", "", 1)) }

// name is a word as the lists below have it: status_code and statuscode are the same.
func name(word string) string { return strings.ReplaceAll(word, "_", "") }

var (
	// statusWords stand before an HTTP status; statusFillers may stand between.
	statusWords = []string{"http", "https", "status", "statuscode", "httpstatus", "httpcode", "httpstatuscode", "code", "codigo", "errorcode",
		"response", "responsecode", "responsestatus", "resposta", "error", "erro", "returned", "returns", "retornou", "retorno", "respondeu",
		"recebido", "recebeu", "responded", "got", "received", "answered"}
	statusFillers = []string{"com", "with", "was", "is", "of", "de", "o", "a", "the", "an"}
	httpVersions  = []string{"http/1.0", "http/1.1", "http/2", "http/2.0", "http/3", "http/3.0"}
	// counted are what a number counts or measures that is no status.
	counted = []string{"bytes", "kb", "mb", "ms", "milliseconds", "milissegundos", "s", "seconds", "segundos", "min", "minutes", "minutos",
		"record", "records", "registros", "rows", "linhas", "items", "itens", "guias", "lotes", "contas", "files", "arquivos", "times", "vezes",
		"attempts", "tentativas", "reais"}
)

// statusPhrases begin what stands behind an HTTP status (RFC 9110, RFC 6585, and what was usual before them).
var statusPhrases = map[string][]string{
	"400": {"bad request"}, "401": {"unauthorized"}, "402": {"payment required"}, "403": {"forbidden"}, "404": {"not found"},
	"405": {"method not"}, "406": {"not acceptable"}, "407": {"proxy auth"}, "408": {"request time"}, "409": {"conflict"}, "410": {"gone"},
	"411": {"length required"}, "412": {"precondition"}, "413": {"content too", "request entity", "payload too"},
	"414": {"uri too", "request uri"}, "415": {"unsupported media"}, "422": {"unprocessable"}, "423": {"locked"}, "425": {"too early"},
	"428": {"precondition"}, "429": {"too many"}, "431": {"request header"}, "500": {"internal server"}, "501": {"not implemented"},
	"502": {"bad gateway", "proxy error"}, "503": {"service unav", "service temp", "server unav"}, "504": {"gateway time"},
	"505": {"http version"}, "507": {"insufficient"}, "508": {"loop"}, "511": {"network auth"},
}

// statusKinds are phrases that stand behind any status of a hundred.
var statusKinds = map[byte]string{'4': "client error", '5': "server error"}

// isStatus tells whether text[from:to], a whole number, stands where an HTTP status stands: before its own phrase, alone
// in brackets, first in the text and followed by a colon, a dash or nothing, or behind a word for one.
func isStatus(text string, from, to int) bool {
	rest, next := before(text, from), behind(text, to)
	if isPhrased(text[from:to], strings.TrimLeft(next, " -:(")) {
		return true
	}
	if next != "" && isWord(rune(next[0])) { // 503ms
		return false
	}
	if isBracketed(rest, next) {
		return true
	}
	next = strings.TrimLeft(next, " ")
	if strings.Trim(rest, " ") == "" {
		return next == "" || next[0] == ':' || next[0] == '-'
	}
	noun, _, _ := strings.Cut(next, " ")
	return isAnnounced(rest) && !slices.Contains(counted, strings.TrimRight(noun, ".,;:)"))
}

func isPhrased(status, next string) bool {
	return slices.ContainsFunc(statusPhrases[status], func(phrase string) bool { return strings.HasPrefix(next, phrase) }) ||
		len(status) == 3 && statusKinds[status[0]] != "" && strings.HasPrefix(next, statusKinds[status[0]])
}

// isBracketed tells whether a number is alone in brackets that are not those of a call or an index: (404), but not the
// line of index.php(404).
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

// isAnnounced tells whether rest ends in a word for a status.
func isAnnounced(rest string) bool {
	if trimmed := strings.TrimRight(rest, " "); slices.ContainsFunc(httpVersions, func(v string) bool { return strings.HasSuffix(trimmed, v) }) {
		return true
	}
	rest, word, gap := lastWord(rest)
	for near(gap) && slices.Contains(statusFillers, word) {
		rest, word, gap = lastWord(rest)
	}
	return near(gap) && slices.Contains(statusWords, name(word))
}

var (
	// tissElements are the names of the elements that hold a code of table 38.
	tissElements = []string{"codigoglosa", "codigoerro", "codigomensagem", "codglosa", "coderro", "codmensagem", "cdglosa", "cderro", "cdmensagem",
		"tipoglosa", "codigoretorno", "motivoglosa", "codigomotivo", "codigonegativa", "codigomensagemerro", "codigomotivoglosa"}
	// tissNouns are what people call one, tissOpeners how they begin to.
	tissNouns = []string{"glosa", "glosas", "erro", "erros", "mensagem", "mensagens", "motivo", "negativa", "recusa", "critica", "tiss",
		"ocorrencia", "rejeicao", "rejection", "denial"}
	tissOpeners = []string{"codigo", "codigos", "cod", "cd", "code", "nr", "no", "n", "numero"}
	// doubtfulNouns are those that other systems number too.
	doubtfulNouns = []string{"erro", "erros", "mensagem", "mensagens", "ocorrencia"}
	// tissOther are what a noun may have that is no code: valor da glosa, linha do erro.
	tissOther    = []string{"valor", "total", "quantidade", "qtd", "linha", "data"}
	prepositions = []string{"da", "de", "do", "das", "dos"}
)

// isTISSCode tells whether text[from:to], a whole number, is marked as a code of table 38: by its element
// (<codigoGlosa>, "codigoErro":), by a noun (glosa 1308, glosas 1402 e 1308, código do erro: 5014), as a field called
// código, or by the table itself.
func isTISSCode(text string, from, to int) bool {
	if at(text, to) == '/' && isDigit(at(text, to+1)) { // 1701/2025 is numbered by the year
		return false
	}
	if word, plain := wordBefore(text, from); plain && !isTISSWord(word) { // most numbers, in a hurry
		return false
	}
	rest, word, gap := lastWord(inTag(withoutList(before(text, from))))
	switch {
	case near(gap) && slices.Contains(tissElements, name(word)):
		return true
	case near(gap) && slices.Contains(tissNouns, word):
		_, owner, _ := lastNoun(rest)
		if slices.Contains(tissOther, owner) {
			return false
		}
		return !slices.Contains(doubtfulNouns, word) || slices.Contains(tissOpeners, owner) || !isNamed(behind(text, to))
	case near(gap) && word == "38":
		_, noun, _ := lastWord(rest)
		return noun == "tabela"
	case !nearAbbreviation(gap) || !slices.Contains(tissOpeners, word):
		return false
	}
	_, noun, gap := lastNoun(rest)
	if near(gap) && slices.Contains(tissNouns, noun) {
		return true
	}
	return strings.HasPrefix(word, "cod") && (noun == "" || strings.Trim(gap, " ") != "") // begins a sentence, or is a field
}

// wordBefore is the last word before a place, as it came; plain is false where the plain form may have another one, or
// where a tag ends behind it.
func wordBefore(text string, place int) (word string, plain bool) {
	least := max(0, place-reachBefore+1)
	end := place
	for end > least && !isWordByte(text[end-1]) {
		if isUnusual(text[end-1]) || text[end-1] == '>' {
			return "", false
		}
		end--
	}
	start := end
	for start > least && isWordByte(text[start-1]) {
		start--
	}
	return text[start:end], start == 0 || start > least && !isUnusual(text[start-1])
}

func isWordByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }

// isUnusual tells that c may begin or end what is one other character in the plain form.
func isUnusual(c byte) bool { return c == '&' || c == ';' || c == '\\' || c >= utf8.RuneSelf }

// tissWords stand right before a code of table 38, before one of its element's name, or between two of a list.
var tissWords = wordSet(tissElements, tissNouns, tissOpeners, []string{"38", "e", "and"})

func wordSet(lists ...[]string) map[string]bool {
	set := make(map[string]bool)
	for _, word := range slices.Concat(lists...) {
		set[word] = true
	}
	return set
}

// isTISSWord tells whether a code may stand behind a word, however that is written.
func isTISSWord(word string) bool {
	var lower [32]byte
	if len(word) > len(lower) || len(word) == 4 && isNumber(word) {
		return true
	}
	for i := range len(word) {
		if word[i] == '_' {
			return true
		}
		lower[i] = plainForm.symbols[word[i]]
	}
	return tissWords[string(lower[:len(word)])]
}

// isNamed tells whether a number is at once followed by a word: erro 1205 deadlock is not the operator's.
func isNamed(next string) bool { return len(next) > 1 && next[0] == ' ' && isWord(rune(next[1])) }

// lastNoun is lastWord without a preposition.
func lastNoun(s string) (rest, word, gap string) {
	rest, word, gap = lastWord(s)
	if near(gap) && slices.Contains(prepositions, word) {
		return lastWord(rest)
	}
	return rest, word, gap
}

// withoutList is s without the codes at its end that are listed before the one behind it: glosas 1402, 1407 e.
func withoutList(s string) string {
	for {
		rest, word, gap := lastWord(s)
		isCode := len(word) == 4 && isNumber(word)
		if !isCode && word != "e" && word != "and" || strings.Trim(gap, " ,") != "" {
			return s
		}
		s = rest
	}
}

// inTag is s with the opening tag at its end, if there is one, as its bare name: "<ans:codigoGlosa xsi:type=…>" is a
// word then.
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
