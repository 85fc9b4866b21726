package classify

import "regexp"

// A refusal beside a lock, a time limit or a request to try again tells of a passing fault: "registro em uso
// (bloqueado), tente novamente". A fault that somebody must correct, or that takes days, does not pass.

// passingReach is how many words on each side of a refusal are looked at.
const passingReach = 16

// later matches words that put a new try off, or tell of work in progress.
const later = `\b(?:aguarde|mais tarde|later|at th(?:is|e) (?:time|moment))\b|\bn(?:este|o) momento(?: [^d]|[^ ]|$)` +
	`|\b(?:em processamento|sendo processad[oa]s?|being processed|still processing)\b`

var (
	// holds make any refusal a passing fault.
	holds = regexp.MustCompile(`\btemporariamente\b|\btemporarily\b|\btempo limite\b|\blimite de tempo\b|\btime limit\b` +
		`|\block (?:table|wait|request)\b|\btempo maximo (?:de|para) (?:processamento|resposta|espera|execucao|consulta)\b` +
		`|\b(?:em uso|bloquead[oa]s?|travad[oa]s?|abert[oa]s?)\b.{0,30}\bpor outr[oa] ` +
		`(?:usuario|processo|programa|operador|terminal|sessao|transacao|instancia)\b` +
		`|\b(?:in use|used|locked|held) by (?:another|other|a different) (?:user|process|program|session|transaction)`)
	// requests do so only for momentary refusals: a wrong CPF stays wrong.
	requests = regexp.MustCompile(`\b(?:tente|tentar) (?:novamente|de novo|apos|depois|daqui|em \d)` +
		`|\b(?:repita|retry|try again)\b|` + later)
	// momentary matches the first word of a refusal that may be for the moment.
	momentary = regexp.MustCompile(`^(?:bloque|trava|exced|ultrapass|esgot|lock|block|exceed)`)
	// delays do so for turnedDown, the first word of a refusal that a mere courtesy leaves as it is (R25).
	delays     = regexp.MustCompile(later)
	turnedDown = regexp.MustCompile(`^(?:recus|reje|aceit|validad|refus|accept)`)
	// tasks tell of work for people, so the refusal stays.
	tasks = regexp.MustCompile(`\b(?:verifi(?:que|car)|corri(?:ja|gir)|confira|conferir|regulari[zs]e|informe` +
		`|atuali[zs]e|alter[ea]|ajuste|contat[eo]|solicit[ea]|revise|check|correct|fix|contact` +
		`|(?:nao|not) (?:tente|repita|retry|try)|dias|(?:um|1|outro|proximo) dia|mes|meses|days?|months?|apresentacao|entrega|internacao)\b`)
)

// passes reports whether the text beside a refusal says that it passes.
func (s *search) passes(refusal *hit) bool {
	beside := s.clauseOf(refusal)
	word := s.at(refusal.from)
	return (holds.Match(beside) || momentary.MatchString(word) && requests.Match(beside) ||
		turnedDown.MatchString(word) && delays.Match(beside)) && !tasks.Match(beside)
}

// clauseOf returns the clause of a hit, including courtesies after it.
func (s *search) clauseOf(h *hit) []byte {
	from, to := h.from, h.to
	for h.from-from < passingReach && s.gapBefore(from) != clauseGap {
		from--
	}
	for to-h.to < passingReach && (s.gapBefore(to) != clauseGap || courtesies[s.at(to)]) {
		to++
	}
	return s.plain[s.words[from].from:s.words[to-1].to]
}

// waits reports whether a message asks to try again, or tells of work in progress. Then a status, or a field's name, is
// no refusal.
func (s *search) waits() bool {
	if s.waiting == nil {
		message := s.plain[:min(len(s.plain), patternReach)]
		answer := requests.Match(message) && !tasks.Match(message)
		s.waiting = &answer
	}
	return *s.waiting
}

// A senha is a password, but beside words of authorisation it is an authorisation's number.
var (
	authorised = regexp.MustCompile(`\b(?:autorizac|guias?\b|procedimento|internac|previa\b)`)
	accessed   = regexp.MustCompile(`\b(?:usuario|login|ws\b|web ?service|acess|portal|certificado|prestador` +
		`|autentic|ao enviar|no envio)`)
)

// authorises reports whether thing is a senha that means an authorisation's number. Then its second rule counts.
func (s *search) authorises(thing *hit) bool {
	clause := s.clauseOf(thing)
	return s.at(thing.from) == "senha" && authorised.Match(clause) && !accessed.Match(clause)
}
