package decision

import (
	"bytes"
	"slices"
	"strconv"

	"retry-worker/internal/text"
)

// takenPhrases are words of failures after which nobody knows whether the portal took the claim, and notSentPhrases those
// that show that nothing was sent; both in lower case without accents, with a space where a word begins or ends (R33).
var (
	takenPhrases = []string{
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
)

// says is what a phrase says of a failure.
type says uint8

const (
	saysPerhaps says = 1 << iota
	saysNotSent
)

// phrases by their first byte.
var phrases = func() (all [256][]phrase) {
	for meaning, list := range map[says][]string{saysPerhaps: takenPhrases, saysNotSent: notSentPhrases} {
		for _, text := range list {
			all[text[0]] = append(all[text[0]], phrase{[]byte(text), meaning})
		}
	}
	return all
}()

type phrase struct {
	text []byte
	says says
}

// ofStatus is what an HTTP status says.
var ofStatus = map[string]says{"429": saysNotSent, "503": saysNotSent, "502": saysPerhaps, "504": saysPerhaps}

// statusWords stand before a number that is an HTTP status; so does the beginning of the text.
var statusWords = [][]byte{[]byte(" http "), []byte(" http 1 1 "), []byte(" http 2 "), []byte(" status "), []byte(" code "),
	[]byte(" statuscode "), []byte(" codigo "), []byte(" erro "), []byte(" error ")}

// perhapsTaken reports whether a failure leaves open whether the portal took the claim: words or a status that say so, and
// none that shows that nothing was sent (R33). status is the one that came beside the text; 0 for none.
func perhapsTaken(read *text.Words, status int) bool {
	var room [4 << 10]byte
	words := append(room[:0], ' ')
	for _, word := range read.All {
		words = append(append(words, read.Plain[word.From:word.To]...), ' ')
	}
	said := ofStatus[strconv.Itoa(status)]
	for i, c := range words {
		for _, p := range phrases[c] {
			if bytes.HasPrefix(words[i:], p.text) {
				said |= p.says
			}
		}
		if status == 0 && (c == '4' || c == '5') && i+3 < len(words) && words[i+3] == ' ' {
			if meaning := ofStatus[string(words[i:i+3])]; meaning != 0 && afterStatusWord(words[:i]) {
				said |= meaning
			}
		}
	}
	return said == saysPerhaps
}

func afterStatusWord(before []byte) bool {
	return len(before) == 1 ||
		slices.ContainsFunc(statusWords, func(word []byte) bool { return bytes.HasSuffix(before, word) })
}

// Hint returns what people should do about d. rule is the hint of the rule that matched; it may be empty, and so may the
// result.
func (d *Decision) Hint(rule string) string {
	if d.Reason == ReasonProbablyAccepted {
		return HintProbablyAccepted
	}
	return rule
}

// ProbablyAcceptedTeam acts on what the portal says that it has already (R33).
const ProbablyAcceptedTeam Team = "faturamento"

// AlreadyThere reports whether an error of that class and reason says that the portal has the claim.
func AlreadyThere(class ErrorClassification, reason Reason) bool {
	return class == Permanent && (reason == "DUPLICATE_CLAIM" || reason == "POSSIBLY_ACCEPTED")
}
