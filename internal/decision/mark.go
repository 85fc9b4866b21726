package decision

import (
	"slices"
	"strconv"
	"strings"
)

// A number in a text is an HTTP status, or a code of table 38, only where the text says so. This file reads what stands
// around it.

// reach is how far before a number its mark is looked for, and behind it, in bytes.
const (
	reachBefore = 96
	reachBehind = 24
)

// before is what stands before text[:from], in its plain form.
func before(text string, from int) string {
	return string(plainOf(text[max(0, from-reachBefore):from]).text)
}

// lastWord cuts the last word, and what is no word behind it, off the end of s.
func lastWord(s string) (rest, word, gap string) {
	end := strings.LastIndexFunc(s, isWord) + 1
	start := strings.LastIndexFunc(s[:end], func(r rune) bool { return !isWord(r) }) + 1
	return s[:start], s[start:end], s[end:]
}

// isWord tells whether r belongs to a word of a plain text.
func isWord(r rune) bool { return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_' }

// near tells whether a gap is so small that the word before it speaks of what is behind it.
func near(gap string) bool { return len(gap) <= len(` = "[`) && !strings.ContainsAny(gap, ";!?/%$") }

// statusWords stand before an HTTP status; fillers may stand between.
var (
	statusWords = []string{"http", "https", "status", "statuscode", "status_code", "httpstatus", "http_status", "httpcode", "http_code", "httpstatuscode",
		"code", "codigo", "response", "responsecode", "resposta", "error", "erro", "returned", "returns", "retornou", "retorno", "respondeu",
		"recebido", "recebeu", "responded", "got", "received", "answered"}
	statusFillers = []string{"com", "with", "was", "is", "of", "de", "o", "a", "the", "an"}
	httpVersions  = []string{"http/1.0", "http/1.1", "http/2", "http/2.0", "http/3", "http/3.0"}
)

// statusPhrases begin what stands behind an HTTP status (RFC 9110, RFC 6585).
var statusPhrases = map[string]string{
	"400": "bad request", "401": "unauthorized", "402": "payment required", "403": "forbidden", "404": "not found", "405": "method not",
	"406": "not acceptable", "407": "proxy auth", "408": "request time", "409": "conflict", "410": "gone", "411": "length required",
	"412": "precondition", "413": "content too", "414": "uri too", "415": "unsupported media", "422": "unprocessable", "423": "locked",
	"425": "too early", "428": "precondition", "429": "too many", "431": "request header", "500": "internal server", "501": "not implemented",
	"502": "bad gateway", "503": "service", "504": "gateway", "505": "http version", "507": "insufficient", "508": "loop", "511": "network auth",
}

// isStatus tells whether text[from:to], a whole number, stands where an HTTP status stands: behind a word for one,
// before its own phrase, alone in brackets, or first in the text and followed by a colon, a dash or nothing.
func isStatus(text string, from, to int) bool {
	rest := before(text, from)
	behind := strings.TrimLeft(string(plainOf(text[to:min(len(text), to+reachBehind)]).text), " -:")
	if phrase := statusPhrases[text[from:to]]; phrase != "" && strings.HasPrefix(behind, phrase) {
		return true
	}
	if first, last := at(text, from-1), at(text, to); first == '[' && last == ']' || first == '(' && last == ')' {
		return true
	}
	trimmed := strings.TrimRight(rest, " ")
	if trimmed == "" {
		behind := strings.TrimLeft(text[to:], " ")
		return behind == "" || behind[0] == ':' || behind[0] == '-'
	}
	if slices.ContainsFunc(httpVersions, func(v string) bool { return strings.HasSuffix(trimmed, v) }) {
		return true
	}
	rest, word, gap := lastWord(rest)
	for near(gap) && slices.Contains(statusFillers, word) {
		rest, word, gap = lastWord(rest)
	}
	return near(gap) && slices.Contains(statusWords, word)
}

// tissElements are the names, without separators, of the elements that hold a code of table 38; tissNouns are what
// people call one, tissOpeners how they begin to.
var (
	tissElements = []string{"codigoglosa", "codigoerro", "codigomensagem", "codglosa", "coderro", "codmensagem", "cdglosa", "cderro", "cdmensagem",
		"tipoglosa", "codigoretorno", "motivoglosa", "codigomotivo", "codigonegativa", "codigomensagemerro", "codigomotivoglosa"}
	tissNouns = []string{"glosa", "glosas", "erro", "erros", "mensagem", "mensagens", "motivo", "negativa", "recusa", "critica", "tiss",
		"ocorrencia", "rejeicao", "rejection", "denial"}
	tissOpeners = []string{"codigo", "codigos", "cod", "cd", "code", "nr", "n", "numero"}
)

// isTISSCode tells whether text[from:], a whole number, is marked as a code of table 38: by its element
// (<codigoGlosa>, "codigoErro":), by a noun (glosa 1308, código do erro: 5014), as a field called código, or by the table
// itself.
func isTISSCode(text string, from int) bool {
	rest, word, gap := lastWord(inTag(before(text, from)))
	if !near(gap) {
		return false
	}
	if slices.Contains(tissNouns, word) || slices.Contains(tissElements, strings.ReplaceAll(word, "_", "")) {
		return true
	}
	rest, noun, gap := lastWord(rest)
	switch {
	case word == "38":
		return noun == "tabela"
	case !slices.Contains(tissOpeners, word):
		return false
	case noun == "" || strings.Trim(gap, " ") != "":
		return strings.HasPrefix(word, "cod") // it begins a sentence, or is a field of that name
	case noun == "da" || noun == "de" || noun == "do":
		_, noun, _ = lastWord(rest)
	}
	return slices.Contains(tissNouns, noun)
}

// inTag is s with the tag at its end, if there is one, as its bare name: "<ans:codigoGlosa xsi:type=…>" is a word then.
func inTag(s string) string {
	open := strings.LastIndexByte(s, '<')
	if open < 0 || !strings.HasSuffix(strings.TrimRight(s, " "), ">") {
		return s
	}
	name, _, _ := strings.Cut(strings.TrimRight(s[open+1:], " >"), " ")
	return s[:open+1] + name[strings.LastIndexByte(name, ':')+1:]
}

// spread lists the numbers of that many digits, in [least, most], that s means: itself, or with xx at its end a
// hundred of them.
func spread(s string, digits, least, most int) (numbers []string, ok bool) {
	head, isGroup := strings.CutSuffix(s, "xx")
	first, err := strconv.Atoi(head)
	if len(s) != digits || !isNumber(head) || err != nil {
		return nil, false
	}
	count := 1
	if isGroup {
		first, count = first*100, 100
	}
	for n := first; n < first+count; n++ {
		if n < least || n > most {
			return nil, false
		}
		numbers = append(numbers, strconv.Itoa(n))
	}
	return numbers, true
}
