package classify

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/text"
)

// Said is what a text tells beside its class.
type Said struct {
	// Perhaps: a failure leaves open whether the portal took the claim. Words or a status say so, and none shows that
	// nothing was sent (R33).
	Perhaps bool
	// Wait that it asks for in words, such as "tente após 1 hora" (R37); 0 where it asks for none.
	Wait time.Duration
}

// Phrases of failures after which nobody knows whether the portal took the claim, of those that show that nothing was sent,
// and of requests to wait; a blank is where a word begins or ends.
var (
	perhapsPhrases = []string{
		"timeout", "timed out", " time out ", "timedout", "tempo esgotado", "esgotado o tempo", "tempo limite", "tempo de espera",
		"tempo excedido", "tempo de resposta", "excedeu o tempo", "deadline exceeded", "awaiting headers", "task was canceled",
		"connection reset", "econnreset", "econnaborted", "connection aborted", "connection lost", "connection was closed",
		"connection closed", "closed connection", "closed the connection", "connection was forcibly closed", "broken pipe",
		"socket hang up", " eof ", "end of file", "empty reply", "recv failure", "premature", "incomplete response",
		"connection error", "network error", "erro de conexao", "falha de conexao", "falha na conexao", "erro de rede",
		"conexao perdida", "perda de conexao", "conexao interrompida", "conexao encerrada", "conexao fechada", "conexao abortada",
		"conexao resetada", "conexao redefinida", "conexao caiu", "queda de conexao", "queda da conexao", "cancelamento de uma conexao",
		"conexao subjacente", "foi perdida", "foi interrompida", "foi encerrada", "foi fechada", "foi abortada",
		"resposta incompleta", "fetching http headers", "receiving the http response", "failed to respond", "no response", "did not respond", "without response", "sem resposta", "nao respondeu",
		"nao houve resposta", "nao obteve resposta", "nao retornou resposta", "em processamento", "sendo processad",
		"aguardando processamento", "being processed", "still processing", "bad gateway", "gateway time",
		"sabemos se ", "sabe se ", "confirmacao se ", "aceito ou re", "aceita ou re", "accepted or re",
	}
	notSentPhrases = []string{
		"refused", "conexao recusada", "conexao foi recusada", "econnrefused", "recusou a conexao",
		"no connection could be made", "connectexception",
		"connecttimeout", "connect timed out", "connect timeout", "connect etimedout", "connection timed out connect", "dial tcp",
		"failed to connect", "could not connect", "unable to connect", "couldn t connect", "connection attempt failed",
		"establish a new connection", "falha ao conectar", "erro ao conectar", "timeout ao conectar", "esgotado ao conectar",
		"nao foi possivel conectar", "nao foi possivel estabelecer", "impossivel conectar", "no route to host", "noroutetohost",
		"unreachable", "inacessivel", "unknown host", "unknownhost", "host desconhecido", "no such host", "enotfound", "eai again",
		"name or service not known", "name resolution", "could not resolve", "nao foi possivel resolver", "getaddrinfo",
		"handshake", "ssl connect error", "certificate", "certificado", "establish trust", "pkix", "too many requests",
		"rate limit", "muitas requisicoes", "limite de requisicoes",
	}
	waitPhrases = strings.Fields("aguarde aguardem aguardar aguardado aguardados espere esperar tente tentar retente " +
		"reenvie reenviar repita repetir wait retry again try")
)

// The roles of phrases.
const (
	perhapsRole role = iota
	notSentRole
	waitRole
	statedRoles
)

// sayings finds all phrases.
var sayings = func() automaton {
	a := newAutomaton()
	for r, list := range [][]string{perhapsRole: perhapsPhrases, notSentRole: notSentPhrases} {
		for _, phrase := range list {
			a.add(phrase, use{role: role(r)})
		}
	}
	for _, word := range waitPhrases {
		a.add(" "+word+" ", use{role: waitRole, length: 1})
	}
	a.build()
	return a
}()

// ofStatus is what an HTTP status says.
var ofStatus = map[string]role{"429": notSentRole, "503": notSentRole, "502": perhapsRole, "504": perhapsRole}

// Says returns what a text and the status that came beside it, 0 for none, tell.
func Says(words *text.Words, status int) (said Said) {
	var found [statedRoles]bool
	sayings.each(words, func(u use, from, to int) {
		if found[u.role] = true; u.role == waitRole && words.At(from-1) != "ao" { // as in "timeout ao aguardar"
			said.Wait = max(said.Wait, waitIn(clauseBehind(words, to)))
		}
	})
	if says, ok := ofStatus[strconv.Itoa(status)]; ok {
		found[says] = true
	}
	eachNumber(words.Plain, func(from, to int) {
		if says, ok := ofStatus[string(words.Plain[from:to])]; ok && status == 0 && isStatus(words.Plain, from, to) {
			found[says] = true
		}
	})
	said.Perhaps = found[perhapsRole] && !found[notSentRole]
	return said
}

// farthest is how many words the unit of a time may stand behind the word that asks to wait.
const farthest = 10

// clauseBehind returns the rest of a clause, from a word on.
func clauseBehind(words *text.Words, from int) []byte {
	to := from
	for to-from < farthest && words.GapBefore(to) != text.Clause {
		to++
	}
	if to == from {
		return nil
	}
	return words.Plain[words.All[from].From-1 : words.All[to-1].To]
}

var (
	// times are such as 30 min, 30min, uma hora or half an hour; with a comma before it a number is but a part of one.
	times = regexp.MustCompile(`[^0-9a-z.,](?:([0-9]{1,4}) ?|(um|uma|one|an?) |(meia|half(?: an?)?) )` +
		`(?:(s|segs?|segundos?|secs?|seconds?)|(mins?|minutos?|minutes?)|(hs?|hrs?|horas?|hours?))\b`)
	// otherwise begins a time that is none to wait: one of the day, one that has passed, or the one in which nothing came.
	otherwise = regexp.MustCompile(`\b(?:d?as|ha|fazem|faz|ago|since|failed|falhou|falharam|failure|esgotad[oa]|exceeded` +
		`|excedid[oa]|expired|expirou|timeout|timed|attempts?|tentativas?|limite?)\b`)
)

// waitIn returns the longest time in the words behind one that asks to wait.
func waitIn(clause []byte) (longest time.Duration) {
	if at := otherwise.FindIndex(clause); at != nil {
		clause = clause[:at[0]]
	}
	for _, m := range times.FindAllSubmatch(clause, -1) {
		n, unit := 1, time.Hour
		switch {
		case m[4] != nil:
			unit = time.Second
		case m[5] != nil:
			unit = time.Minute
		}
		if m[1] != nil {
			n, _ = strconv.Atoi(string(m[1]))
		} else if m[3] != nil {
			unit /= 2
		}
		longest = max(longest, time.Duration(n)*unit)
	}
	return longest
}
