package classify

import (
	"regexp"
	"slices"
	"strings"

	"retry-worker/internal/text"
)

// A refusal beside a lock, a time limit or a request to come again tells of what passes: "registro em uso (bloqueado),
// tente novamente". What somebody must correct, and what takes days, does not pass.

// passingReach is how many words on each side of a refusal are looked at.
const passingReach = 16

var (
	// holds take any refusal away.
	holds = regexp.MustCompile(`\btemporariamente\b|\btemporarily\b|\btempo limite\b|\blimite de tempo\b|\btime limit\b` +
		`|\btempo maximo (?:de|para) (?:processamento|resposta|espera|execucao|consulta)\b` +
		`|\b(?:em uso|bloquead[oa]s?|travad[oa]s?|abert[oa]s?)\b.{0,30}\bpor outr[oa] ` +
		`(?:usuario|processo|programa|operador|terminal|sessao|transacao|instancia)\b` +
		`|\b(?:in use|used|locked|held) by (?:another|other|a different) (?:user|process|program|session|transaction)`)
	// requests take away what may have been refused for the moment: a wrong CPF stays wrong.
	requests = regexp.MustCompile(`\b(?:tente|tentar) (?:novamente|de novo|mais tarde)\b` +
		`|\b(?:repita|aguarde|retry|try again)\b`)
	momentary = strings.Fields("bloque trava exced ultrapass esgot recus reje lock block refus exceed")
	// tasks keep the refusal.
	tasks = regexp.MustCompile(`\b(?:verifi(?:que|car)|corri(?:ja|gir)|confira|conferir|regulari[zs]e|informe` +
		`|atuali[zs]e|alter[ea]|ajuste|contat[eo]|solicit[ea]|revise|check|correct|fix|contact` +
		`|(?:nao|not) (?:tente|repita|retry|try)|dias?|mes|meses|days?|months?|apresentacao|entrega|internacao)\b`)
)

// passes reports whether what stands beside a refusal says that it passes.
func (s *search) passes(refusal *hit) bool {
	from, to := refusal.from, refusal.to
	for n := 0; n < passingReach && s.gapBefore(from) != text.Clause; n++ {
		from--
	}
	for n := 0; n < passingReach && (s.gapBefore(to) != text.Clause || courtesies[s.At(to)]); n++ {
		to++
	}
	beside := s.Plain[s.All[from].From:s.All[to-1].To]
	isMomentary := refusal.role == refusalRole && slices.ContainsFunc(momentary, func(prefix string) bool {
		return strings.HasPrefix(s.At(refusal.from), prefix)
	})
	return (holds.Match(beside) || isMomentary && requests.Match(beside)) && !tasks.Match(beside)
}
