package redact_test

import (
	"strings"
	"testing"
)

// fragments are what means something to the scanner, for texts that reach every state of it.
var fragments = []string{
	"cpf", "CPF", "CNS", "carteira", "telefone", "email", "nome", "name", "paciente", "Beneficiário", "nascimento", "prontuário", "endereco", "RG",
	"documento", "cnpj", "CNPJ", "protocolo", "guias", "NSU", "CLM-", "key", "timestamp", "sus", "cartão", "Dr. ", "BRL", "R$", "ans:", "na operadora ",
	"Maria", "JOSE", "da", "Silva", "de", "e", "A", "o", "X", "não", "inválido", "foo", "Bar", "fooBar", "nomeBeneficiario", "numeroCarteira", "é um ",
	"value '", "valor", "element", "type", "of", " '", "' of element '", "ans:cpf'",
	cpf, punctuated(cpf), badCPF, "123", "45", "6", "789", "1234", "12", "123456", "12345678", "1234567890", "123456789", visa, "4111", "1111", "5678",
	"11", "91234", "0001", "55", "2025", "01", "10", "40", "700", "0000", "0005", cns, "99", "192", "168", "1.504,00", "12345678901234567890123",
	" ", " ", " ", ".", "-", "/", ",", ":", "=", "\"", "'", "<", ">", "</", "(", ")", "+", "@", "_", ";", "&", "%", "?", "#", "[", "]", "{", "}", "$", "*", "|",
	"%20", "%40", "%22", "%25", "%C3%A3", "&quot;", "&amp;", "&#64;", "&atilde;", `\"`, `\u0022`, `\`, "\n", "\u200b", "\u00a0", "\x1b[31m", "\xe3", "１", "٣",
	"[CPF]", "[NAME]", "[E-MAIL]", "[CARD]", "[PHONE]", "[BIRTHDATE]", "x.com", "com", "br", "whatsapp.net", "://", "http", "http://h/", "T", "Z",
	"senha", "password", "token", "Authorization", "Bearer ", "Basic ", "cookie", "api", "key", "secret", "chave", "eyJhbGciOi", "ghp_", "AKIA", "[SECRET]",
	"-----BEGIN ", "PRIVATE KEY-----", "-----END", "Abc123!", "valor=", "Path=/", "u:p", "; ", ": ", "null", "&lt;", "&gt;", "(at)", "①",
	"nome;cpf\n", "guia\tnome\n", "nome  cpf\n", "(nome, cpf) VALUES (", "]", "=>", "\n  ", "CN=", "informado", "faturista", "SOUZA, ANA", "given\":[", "code",
	"nome\n", "....", "minha ", "De: ", "column '", "value is (", "home/", "\nvalue: ", "\";s:1:\"", "like '%", "' (nome)", " => \"", "nova", "`",
	"deadbeef", "a1b2c3d4", "-e89b-12d3-a456-", "426614174000", "CDATA[", "<![CDATA[",
	"=C3=A7", "%25C3%25A3", "Ana Reis", "1950-01-02", "05071958", "[CPF];", "values (", "path=", "Ms. ", "placa ", "ABC1D23", "Mar 3, 1951", "PGE+PG5vbWU+QW5hPC9ub21lPg==",
}

// found are texts for which a reading once did not hold what it must.
var found = []string{
	"://%22%40",
	"%22000000000-00 ",
	"chave99eyJhbGciOinomeBeneficiario " + cpf + "valor",
	"endereco\"cpf" + cpf,
	"prontuário123456paciente123456789091234567890",
	punctuated(cpf) + "A" + luhnOf("123456789078"),
	"guias" + punctuated(cpf) + "\u200b" + punctuated(cpf),
	"value '20252025' of element '55x.comx.com" + cns + "' of element '",
	"enderecoSilva12345678Beneficiário" + badCPF,
	"a@bc.de." + cpf,
	"paciente ana@x.com's Silva",
	"100%22" + cpf[2:],
	"value '" + badCPF + "' of element 'element&quot;paciente&quot;" + cpf + "nomeBeneficiario'",
	"[CARD]" + punctuated(cpf) + "123456789e" + cpf + "1234567806212345678062" + cpf + "٣",
	"nomeBeneficiario\u200bSilva" + cpf + "value 'valorvalorvalor'",
	"Dr. value 'da' of element 'numeroCarteira" + cpf + "'",
	"nome value '" + strings.Repeat("x ", 95) + cpf + "'",
	"endereco='" + strings.Repeat("x ", 95) + cpf + "'",
	"paciente 12345678-1234-1234-1234-12345678a" + punctuated(cpf),
}

// FuzzText feeds any bytes; what was found is part of every run.
func FuzzText(f *testing.F) {
	for _, s := range found {
		f.Add(s)
	}
	for _, file := range files {
		for _, c := range cases(f, file) {
			f.Add(c[0])
		}
	}
	f.Fuzz(func(t *testing.T, s string) { holds(t, s) })
}
