package gatewaytest

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is what the policy "tiss-submission" must make of a claim.
type Kind int

// The kinds, in the order in which a [Mix] counts them.
const (
	Transient Kind = iota // a known passing error: retry
	Unknown               // an error no rule knows: retry
	Permanent             // PERMANENT_ERROR
	Exhausted             // MAX_RETRIES_EXCEEDED
	Rejected              // input that fails the job with retries 0 (R11)
	kinds     int  = iota
)

var kindNames = [kinds]string{"transient", "unknown", "permanent", "exhausted", "rejected"}

// String is the kind's name in the text form of a [Mix].
func (k Kind) String() string { return kindNames[k] }

// Mix makes synthetic claims in fixed shares, determined by the job's number
// alone: every 100 jobs in a row hold exactly the shares.
type Mix struct {
	Shares [kinds]int // per cent, by [Kind]; they add up to 100
	// At dates lastSubmissionTime, up to an hour before; zero leaves that out.
	// It must not lie ahead of the worker's clock (R23).
	At time.Time
}

// DefaultMix is what a claims department sees on an ordinary day.
func DefaultMix() Mix { return Mix{Shares: [kinds]int{60, 15, 15, 8, 2}} }

// String is the form that ParseMix reads.
func (m Mix) String() string {
	parts := make([]string, kinds)
	for k := range parts {
		parts[k] = fmt.Sprintf("%s=%d", Kind(k), m.Shares[k])
	}
	return strings.Join(parts, ",")
}

// ParseMix reads "transient=60,unknown=15,permanent=15,exhausted=8,rejected=2";
// kinds not named have no share, and the shares must add up to 100.
func ParseMix(text string) (Mix, error) {
	var m Mix
	sum := 0
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		share, err := strconv.Atoi(number)
		k, known := kindOf(name)
		if err != nil || share < 0 || !known {
			return Mix{}, fmt.Errorf("mix %q: found %q, expected a kind and its share in per cent, such as %s", text, part, DefaultMix())
		}
		sum += share - m.Shares[k]
		m.Shares[k] = share
	}
	if sum != 100 {
		return Mix{}, fmt.Errorf("mix %q: the shares add up to %d, expected 100", text, sum)
	}
	return m, nil
}

func kindOf(name string) (Kind, bool) {
	for k, known := range kindNames {
		if name == known {
			return Kind(k), true
		}
	}
	return 0, false
}

// Kind is what the n-th job is.
func (m Mix) Kind(n int64) Kind {
	place := int(n * 37 % 100) // 37 has no factor in common with 100: the kinds are spread
	for k, share := range m.Shares {
		if place -= share; place < 0 {
			return Kind(k)
		}
	}
	return Transient // unreachable: the shares add up to 100
}

// The errors of each kind, by the codes of RN-BIL-005 §2.1 and RN-BIL-004; the
// CPF is synthetic.
var (
	transientErrors = []string{
		"TIMEOUT - portal TISS sem resposta apos 30s",
		"HTTP 503 Service Unavailable ao enviar o lote",
		"NETWORK_ERROR: connection reset by peer",
		"RATE_LIMIT: aguarde para reenviar",
		"java.net.SocketTimeoutException: Read timed out",
		"CONNECTION_ERROR ao abrir o canal com a operadora",
	}
	unknownErrors = []string{
		"Lote devolvido sem mensagem da operadora",
		"Resposta inesperada do portal: <html>manutencao</html>",
		"Guia em analise pela operadora",
	}
	permanentErrors = []string{
		"INVALID_PATIENT_DATA: CPF 000.000.001-91 divergente do cadastro",
		"INSURANCE_EXPIRED - carteirinha fora da vigencia",
		"AUTHORIZATION_DENIED: senha negada pela operadora",
		"DUPLICATE_CLAIM - guia ja apresentada",
		"INVALID_PROCEDURE_CODE: procedimento fora da tabela TUSS",
	}
)

// Job is the n-th job, its variables and element only.
func (m Mix) Job(n int64) Job {
	c := m.claim(n)
	doc := make([]byte, 0, 192)
	doc = append(doc, `{"claimId":"CLM-BENCH-`...)
	doc = strconv.AppendInt(doc, n, 10)
	doc = append(append(doc, c.suffix...), `","submissionError":"`...)
	doc = append(append(doc, c.problem...), `","retryCount":`...)
	doc = strconv.AppendInt(doc, c.retries, 10)
	if !m.At.IsZero() {
		doc = append(doc, `,"lastSubmissionTime":"`...)
		doc = m.At.UTC().Add(-time.Duration(n%3600)*time.Second).AppendFormat(doc, time.RFC3339)
		doc = append(doc, '"')
	}
	return Job{Variables: string(append(doc, '}')), BpmnProcessID: "SUB_06", ElementID: "analyze-retry"}
}

// claim is what sets one job apart from another.
type claim struct {
	suffix  string // behind the number of the claim id
	problem string
	retries int64
}

func (m Mix) claim(n int64) claim {
	switch m.Kind(n) {
	case Unknown:
		return claim{problem: draw(unknownErrors, n), retries: n % 5}
	case Permanent:
		return claim{problem: draw(permanentErrors, n), retries: n % 5}
	case Exhausted:
		return claim{problem: draw(transientErrors, n), retries: 5 + n%3}
	case Rejected:
		return malformed[n/100%int64(len(malformed))]
	}
	return claim{problem: draw(transientErrors, n), retries: n % 5}
}

// malformed are the inputs that R11 rejects: id, counter, error.
var malformed = []claim{
	{suffix: "X", problem: transientErrors[0]},
	{problem: transientErrors[0], retries: -1},
	{problem: "  "},
}

func draw(from []string, n int64) string { return from[n/7%int64(len(from))] }
