package redact_test

import (
	"testing"

	"retry-worker/internal/redact"
)

// hard are texts that, repeated, could make a scanner look ahead again and again.
var hard = []string{
	"1", "1 ", "12 ", "1.", "1\u200b", "1 \u200b", "123.456.78 ", "1234 5678 9012 3456 ", "12345678909", "(11) ", "((", "+1", "1-1/", "2025-01-", "10:40:",
	"a@", "@", "a.", "a@a.", "a'", "a+", "\\", "\\\"", "%", "%25", "%20", "&", "&amp;", "&#", "x://", "x://a@", "://", ":", "<", "</a", "[", "[CPF", "\"", "'",
	"nome: Maria ", "nome: a b c ", "nome A.", "nome:a.", "nome ", "Maria ", "abcDef", "ABc", "cpf ", "cpf: 123 ", "\"cpf\":", "cpf %22", "protocolo 1-", "guias 1,",
	"CLM-", "CLM-1-", "value 'a", "value '", "valor '1' ", "type '", "endereco=\"a ", "deadbeef0-", "12345678-1234-1234-", "\u200b", "\x1b[", "ã", "é1", "\xe3", "0x1", "R$ 1.",
	"12345678900 a ", "é um 12345678900 ", "nascimento 1 de ", "1 de ", "carteira 12 ", "11 91234-", "senha ", "senha", "senha=", "senha='", "senha \"", "<senha ", "<senha>", "senha=a,", "token:", "cookie: a=b; ", "Bearer ", "eyJ",
	"-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "x://a:b/", "senha a ", "senha_", "a (at) ", "(at)", "\"a", "key ", "api key ", "_", "a_", "1_", ",", "paciente ",
	"nome;cpf\n", "nome;", "nome  ", "nome,cpf,", "(nome,cpf)=(", "(nome,cpf)='(", "nome,\n\"", "]=>", "=>\n string(1) ", "\n ", "A: AB, AB ", "mysqli('a','", "given\":[\"",
	"digest ", "--p", "nome 'maria", "%31", "%3A%2F%2F", "PID ", "PID|", "att,\n", "</td><td>", "e o codigo de acesso ", "<attribute name=\"a\">", "informado (Ana ", "valor 'a' campo 'b' ", "rua A ",
	"\"nome;", "\"nome;a\" => \"", "nome\nana ", "nome\nAna\n", "paciente\n", "....", "minha mae ", "De: Ana ", "De: Ana\n", "column 'a' ", "value is (", "nome value is (a)", "home/a.",
	"name: senha\nvalue: ", "\"nome\";s:1:\"", "like '%", "1' (nome) ", "paciente [:1='a' ", "pwd=a;A B ",
	"seu codigo a ", "codigo sms ", "codigo de acesso a ", "campo:\"a\",\"b\": \"c\",", "ola <b>", "ola <b> ", "2025-01-01 Ana ", "10:10 ", "\n10:10 ", "token/1a1a", "senha_", "paciente a_", "cpf_ana", "12 e seu a ", "Ana Ana <a@b.co> ",
	"params: a, ", "params (a, ", "contains (a, ", ":1='Ana ", "<AttributeValue>a", "parameter 1 ", "\"field\":\"a\",", "value 'A B' nome ",
	"=C3", "%25C3", "QUJD", "PGE+", "[CPF];", "(a, [CPF], ", "[NAME],a,", "[CNS]\t", "nome=\nAna\n", "placa a ", "values (a, ", "Ana Reis;", "nome: Ana Reis; Ana ",
	"dob Mar ", "path=a.", "paciente Ms. ", "a@b.co:/", "[NAME];1950-01-01;",
}

var typical = []struct {
	name, text  string
	allocations float64
}{
	{"timeout", "TIMEOUT - Connection timeout after 30s", 0},
	{"60 bytes", "SERVICE_UNAVAILABLE - portal da operadora fora do ar, HTTP 503", 0},
	{"accents", "Não foi possível validar o arquivo XML. Hash informado no XML inválido!", 0},
	{"claim", "DUPLICATE_CLAIM - CLM-ENC-001-1234567890 em 2025-01-12T10:40:00Z", 0},
	{"protocol", "Protocolo já utilizado: 12345678909, R$ 1.504,00", 0},
	{"CPF", "INVALID_PATIENT_DATA - CPF inválido: {cpf.}", 1},
	{"bare CPF", "INVALID_PATIENT_DATA - CPF inválido: {bad}", 1},
	{"name and CPF", "CPF do beneficiário Maria da Silva inválido: {bad}", 1},
	{"XML", "<ans:cpf>{bad}</ans:cpf><ans:nomeBeneficiario>MARIA</ans:nomeBeneficiario>", 1},
}

// TestAllocations: nothing where there is nothing to take, else the result alone.
func TestAllocations(t *testing.T) {
	for _, c := range typical {
		text := fill(c.text)
		if got := testing.AllocsPerRun(100, func() { redact.Text(text) }); got > c.allocations {
			t.Errorf("%s: %v allocations, want %v at most", c.name, got, c.allocations)
		}
		if got := testing.AllocsPerRun(100, func() { redact.Line(text, 1000) }); got > c.allocations {
			t.Errorf("%s: %v allocations of Line, want %v at most", c.name, got, c.allocations)
		}
	}
}
