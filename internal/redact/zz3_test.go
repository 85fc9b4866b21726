package redact
import ("testing";"strings";"fmt")
var sink string
func BenchmarkText(b *testing.B) {
	for _, c := range []string{"TIMEOUT - Connection timeout after 30s",
	"SERVICE_UNAVAILABLE - portal da operadora fora do ar, HTTP 503",
	"TIMEOUT - Connection timeout after 30s while submitting claims",
	"INVALID_PATIENT_DATA - CPF inválido: 123.456.789-09",
	"CPF 12345678909 inválido",
	"CPF do beneficiário Maria da Silva inválido: 123 456 789 01",
	"Protocolo já utilizado: 12345678909 em 2025-01-12T10:40:00Z",
	"Não foi possível validar o arquivo XML. Hash informado no XML inválido!",
	} {
		n := min(len(c), 40)
		b.Run(fmt.Sprint(len(c), c[:n]), func(b *testing.B) { b.ReportAllocs(); for b.Loop() { sink = Text(c) } })
	}
	for _, c := range []string{"TIMEOUT - Connection timeout after 30s; ","CPF 123.456.789-09 de Maria da Silva; ", "1 ", "12 ", "1234 5678 9012 3456 ","123.456.78 ", "a@", "\\", "%25", "&amp;", "x://", "nome: Maria ", "a.b.", "1\u200b", "<a", "deadbeef0-", "nome: a b c d e f g h i ","12345678909", "CLM-", "abcDef", "+1", "(11) ", "endereco=\"a ", "protocolo 1-", "\u200b", "a'", "\"cpf\":"} {
		for _, n := range []int{1000, 1000000} {
			s := strings.Repeat(c, n/len(c))
			b.Run(fmt.Sprintf("%q/%d", c, n), func(b *testing.B) { b.SetBytes(int64(len(s))); for b.Loop() { sink = Text(s) } })
		}
	}
}
