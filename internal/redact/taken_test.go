package redact_test

import (
	"strings"
	"testing"

	"retry-worker/internal/redact"
)

// taken says what becomes of what; the synthetic numbers are filled in.
var taken = []struct{ why, text, want string }{
	// CPF
	{"as printed on the card", "CPF {cpf.} inválido", "CPF [CPF] inválido"},
	{"as printed, no label, wrong check digits", "recusado {bad.} hoje", "recusado [CPF] hoje"},
	{"blanks", "CPF 123 456 789 01", "CPF [CPF]"},
	{"odd separators", "123/456/789/01; 123_456_789_01; 123 . 456 . 789 - 01; 123–456–789–01; 123·456·789-01; 123*456*789*01", "[CPF]; [CPF]; [CPF]; [CPF]; [CPF]; [CPF]"},
	{"comma with a hyphen behind it", "123,456,789-01", "[CPF]"},
	{"over a line's end", "123.456.\n789-01", "[CPF]"},
	{"nine and two, wrong check digits", "paciente {bad-}", "paciente [CPF]"},
	{"nine and two, no label", "x {bad-}", "x [CPF]"},
	{"bare, by its check digits", "recusado {cpf} hoje", "recusado [CPF] hoje"},
	{"bare, glued to letters", "PAC{cpf}X arquivo_{cpf}.xml", "PAC[CPF]X arquivo_[CPF].xml"},
	{"bare, label before", "CPF {bad}", "CPF [CPF]"},
	{"bare, label glued", "CPF{bad} CPF:{bad} CPF={bad} CPF#{bad}", "CPF[CPF] CPF:[CPF] CPF=[CPF] CPF#[CPF]"},
	{"bare, label with number sign", "CPF nº {bad}, CPF n.º {bad}, CPF no. {bad}, CPF N° {bad}", "CPF nº [CPF], CPF n.º [CPF], CPF no. [CPF], CPF N° [CPF]"},
	{"bare, label and words", "CPF do beneficiário informado na guia não confere: {bad}", "CPF do beneficiário informado na guia não confere: [CPF]"},
	{"bare, label behind", "{bad} não é um CPF válido", "[CPF] não é um CPF válido"},
	{"bare, label behind in quotes", "o valor '{bad}' do campo 'cpfBeneficiario'", "o valor '[CPF]' do campo 'cpfBeneficiario'"},
	{"bare, eight words behind its label", "CPF um dois tres quatro cinco seis sete oito {bad}", "CPF um dois tres quatro cinco seis sete oito [CPF]"},
	{"zeros lost", "CPF 12345678", "CPF [CPF]"},
	{"a list", "CPFs {bad}, {bad.} e {cpf}", "CPFs [CPF], [CPF] e [CPF]"},
	{"table", "CPF;Nome\n{bad};-", "CPF;Nome\n[CPF];-"},
	{"all digits equal", "cpf 11111111111", "cpf [CPF]"},
	{"one by one", cut(cpf, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, " "), "[CPF]"},
	{"partly cut", cut(cpf, []int{6, 5}, "."), "[CPF]"},
	{"full-width digits and signs", "１２３．４５６．７８９－０１", "[CPF]"},
	{"Arabic and Devanagari digits", "١٢٣.٤٥٦.٧٨٩-٠١ १२३.४५६.७८९-०१ 𝟏𝟐𝟑.𝟒𝟓𝟔.𝟕𝟖𝟗-𝟎𝟏", "[CPF] [CPF] [CPF]"},
	{"non-breaking space and hyphen", "123\u00a0456\u202f789\u201101", "[CPF]"},
	{"zero-width between digits", "CPF 1\u200b2\u200d3\ufeff4\u20605\u00ad6780" + cpf[9:], "CPF [CPF]"},
	{"bidi controls and ANSI between digits", "123.\u202e456\x1b[31m.789\x1b[0m-01\x1b[0m", "[CPF]\x1b[0m"},
	{"control characters between digits", "CPF 123\x00456\x01780\x7f" + cpf[9:], "CPF [CPF]"},
	{"ISO-8859-1 bytes", "benefici\xe1rio Jo\xe3o da Silva, CPF 123\xa0456\xa0789\xad01", "benefici\xe1rio [NAME], CPF [CPF]"},
	{"entities between digits", "123&#46;456&nbsp;789&#x2d;01", "[CPF]"},
	{"URL-encoded between digits", "123%2E456%20789%2D01", "[CPF]"},
	{"JSON escapes between digits", `123\u00a0456\u00a0789\u201101`, "[CPF]"},
	{"digits as JSON escapes", `\u0031\u0032\u0033.456.789-01`, "[CPF]"},
	{"form's blanks", "cpf=123+456+789+01", "cpf=[CPF]"},
	{"labelled as a person's: a CNPJ", "CPF: {cnpj.}", "CPF: [CPF]"},
	{"of either kind", "CPF/CNPJ: {bad}; CNPJ/CPF {bad}; documento {bad}", "CPF/CNPJ: [CPF]; CNPJ/CPF [CPF]; documento [CPF]"},
	{"IPv4 by its form, CPF by its label", "CPF 111.222.133.44", "CPF [CPF]"},
	{"amount by its form, CPF by its label", "CPF 123.456.789,01", "CPF [CPF]"},
	{"behind a protocol's label, as printed", "protocolo {cpf.}", "protocolo [CPF]"},
	{"behind a claim's id", "CLM-001-{cpf.}", "CLM-001-[CPF]"},
	{"no protocol's any more", "Protocolo não encontrado para o CPF {bad}; protocolo. {cpf}", "Protocolo não encontrado para o CPF [CPF]; protocolo. [CPF]"},
	{"the second number", "protocolo 123, {cpf}", "protocolo 123, [CPF]"},
	{"behind a list's end", "protocolos {prot}; {cpf}", "protocolos {prot}; [CPF]"},
	{"after a percent sign, a backslash", "100%{cpf}, 50%" + cpfOf("223456789") + `, C:\u{cpf}`, "100%[CPF], 50%[CPF], C:\\u[CPF]"},
	{"colons", "111:444:777:35 às 10:40:00", "[CPF] às 10:40:00"},
	{"digits with a ring, in parentheses, above the line", "①②③.④⑤⑥.⑦⑧⑨-⓪①, ⑴⑵⑶⑷⑸⑹⑺⑻⓪" + cpf[9:] + ", CPF ¹²³⁴⁵⁶⁷⁸⁰" + cpf[9:], "[CPF], [CPF], CPF [CPF]"},
	{"zeros, so no IPv4 address", "000.000.000.00", "[CPF]"},

	// JSON, XML, HTML, forms, URLs
	{"JSON", `{"cpf":"{bad}","nome":"Maria da Silva","protocolo":"{prot}"}`, `{"cpf":"[CPF]","nome":"[NAME]","protocolo":"{prot}"}`},
	{"JSON in JSON", `{\"cpf\":\"{bad}\",\"nomePaciente\":\"JOSÉ D'ÁVILA\"}`, `{\"cpf\":\"[CPF]\",\"nomePaciente\":\"[NAME]\"}`},
	{"JSON in JSON in JSON", `{\\\"cpf\\\":\\\"{bad}\\\",\\\"nome\\\":\\\"Ana\\\"}`, `{\\\"cpf\\\":\\\"[CPF]\\\",\\\"nome\\\":\\\"[NAME]\\\"}`},
	{"JSON with escaped letters", `"benefici\u00e1rio":"Jo\u00e3o da Silva"`, `"benefici\u00e1rio":"[NAME]"`},
	{"HTML-escaped", `&quot;cpf&quot;:&quot;{bad}&quot;,&quot;nome&quot;:&quot;Jo&atilde;o&quot;`, `&quot;cpf&quot;:&quot;[CPF]&quot;,&quot;nome&quot;:&quot;[NAME]&quot;`},
	{"HTML-escaped twice", `&amp;quot;cpf&amp;quot;:&amp;quot;{bad}&amp;quot;`, `&amp;quot;cpf&amp;quot;:&amp;quot;[CPF]&amp;quot;`},
	{"URL-encoded JSON", `cpf%22%3A%22{bad}%22%2C%22email%22%3A%22ana%40exemplo.com.br%22`, `cpf%22%3A%22[CPF]%22%2C%22email%22%3A%22[E-MAIL]%22`},
	{"URL-encoded twice", `cpf%2522%253A%2522{bad}%2522 ana%2540exemplo.com`, `cpf%2522%253A%2522[CPF]%2522 [E-MAIL]`},
	{"form", "nome=Maria+da+Silva&cpf={bad}&nome=Jo%C3%A3o%20Souza&x=1", "nome=[NAME]&cpf=[CPF]&nome=[NAME]&x=1"},
	{"XML", "<ans:cpf>{bad}</ans:cpf><ans:nomeBeneficiario>MARIA DA SILVA</ans:nomeBeneficiario>", "<ans:cpf>[CPF]</ans:cpf><ans:nomeBeneficiario>[NAME]</ans:nomeBeneficiario>"},
	{"XML over lines", "<cpf>\n  {bad}\n</cpf>\n<nome>\n  maria\n</nome>", "<cpf>\n  [CPF]\n</cpf>\n<nome>\n  [NAME]\n</nome>"},
	{"XML, CDATA", "<nome><![CDATA[Silva, Maria]]></nome>", "<nome><![CDATA[[NAME]]]></nome>"},
	{"XML, escaped", "&lt;nome&gt;Maria&lt;/nome&gt;&lt;numeroCarteira&gt;00123456&lt;/numeroCarteira&gt;", "&lt;nome&gt;[NAME]&lt;/nome&gt;&lt;numeroCarteira&gt;[CARD]&lt;/numeroCarteira&gt;"},
	{"XML attributes", `<beneficiario nome="Maria" cpf='{bad}'/>`, `<beneficiario nome="[NAME]" cpf='[CPF]'/>`},
	{"key=value", "nomeBeneficiario=Maria da Silva, numeroCPF={bad}, DATA_NASCIMENTO=1980-03-12", "nomeBeneficiario=[NAME], numeroCPF=[CPF], DATA_NASCIMENTO=[BIRTHDATE]"},
	{"camel case behind a letter with an accent", "JOÃONumerocarteira 2027134", "JOÃONumerocarteira [CARD]"},
	{"camel and snake case", "CPFBeneficiario {bad} cpf_paciente {bad} NR_CPF {bad} beneficiarioCpf {bad}", "CPFBeneficiario [CPF] cpf_paciente [CPF] NR_CPF [CPF] beneficiarioCpf [CPF]"},
	{"query string", "GET https://portal.operadora.com.br/v1/{cpf}?cpf={bad}&mail=a.b%40c.com#x", "GET https://portal.operadora.com.br/v1/{cpf}?cpf=[CPF]&mail=[E-MAIL]#x"},
	{"query string, no label", "https://h.com.br?{cpf}", "https://h.com.br?[CPF]"},
	{"path behind its label", "https://h.com.br/cpf/{bad}/x http://h/pacientes/{cpf}", "https://h.com.br/cpf/[CPF]/x http://h/pacientes/[CPF]"},
	{"path, unmistakable", "https://h.com.br/x/{bad.}/ana@exemplo.com/y", "https://h.com.br/x/[CPF]/[E-MAIL]/y"},
	{"path, a label's number not right behind it", "https://h.com.br/cpf/x/{bad} https://h.com/telefone/192/x https://h.com/pacientes/123456", "https://h.com.br/cpf/x/{bad} https://h.com/telefone/192/x https://h.com/pacientes/123456"},
	{"a path alone", "GET /beneficiarios/{cpf} HTTP/1.1", "GET /beneficiarios/[CPF] HTTP/1.1"},
	{"user of a URL", "amqp://ana:segredo@10.0.0.5:5672/fila https://ana%40x.com@h.com/y", "amqp://[USER]@10.0.0.5:5672/fila https://[USER]@h.com/y"},
	{"URL with escaped slashes", `"url":"https:\/\/h.com\/a?cpf={bad}"`, `"url":"https:\/\/h.com\/a?cpf=[CPF]"`},

	{"other spaces, hyphens and quotation marks", "CPF “{bad}”, CPF ‘{bad}’, 123⁄456⁄789−01, cpf＝{bad}", "CPF “[CPF]”, CPF ‘[CPF]’, [CPF], cpf＝[CPF]"},
	{"encoded line breaks", "cpf:%0A{bad}&#10;cpf&#x;{bad} a\x85{bad} CPF", "cpf:%0A[CPF]&#10;cpf&#x;[CPF] a\x85[CPF] CPF"},
	{"broken ANSI", "123.456\x1b.789-01 \x1b[" + strings.Repeat("1;", 20) + "{cpf}", "[CPF] \x1b[" + strings.Repeat("1;", 20) + "[CPF]"},
	{"unseen characters within a label", "C\u200bP\u200bF {bad} n\u200bome: A\u200bna", "C\u200bP\u200bF [CPF] n\u200bome: [NAME]"},
	{"a label is the next number's", "contrato {bad}, CPF {cpf.}", "contrato {bad}, CPF [CPF]"},
	{"ISO-8859-1 and controls, escaped", "nome=Jo%E3o&cpf=" + `123\u0001456\x01789-01`, "nome=[NAME]&cpf=[CPF]"},
	{"as printed, behind a protocol's letters", "protocolo ABC-{cpf.}, protocolo 1-{cpf.}", "protocolo ABC-[CPF], protocolo 1-[CPF]"},
	{"label behind, no number behind it", "{bad} (CPF) recusado, {bad} - CPF", "[CPF] (CPF) recusado, [CPF] - CPF"},

	// CNS
	{"bare", "carteira nacional {cns}", "carteira nacional [CNS]"},
	{"as printed", "x {cns4} x " + cut(cns, []int{3, 4, 4, 4}, "."), "x [CNS] x [CNS]"},
	{"as printed, wrong check", "x {badcns4}", "x [CNS]"},
	{"eleven and four, bare and cut", cut(cns, []int{11, 4}, " ") + " " + cut(cns, []int{3, 12}, "-"), "[CNS] [CNS]"},
	{"labelled, wrong check", "CNS {badcns} e CNS inválido no envio: {badcns}", "CNS [CNS] e CNS inválido no envio: [CNS]"},
	{"labelled in words", "Cartão Nacional de Saúde {badcns}, cartão SUS: {badcns}", "Cartão Nacional de Saúde [CNS], cartão SUS: [CNS]"},
	{"label behind", "{badcns} não é CNS", "[CNS] não é CNS"},

	// cards
	{"bare", "x {card} x {amex}", "x [CARD] x [CARD]"},
	{"in fours", "x {card4} x {card-} x " + cut(visa, []int{4, 4, 4, 4}, "\u00a0", "\u2011"), "x [CARD] x [CARD] x [CARD]"},
	{"American", "{amex3}", "[CARD]"},
	{"13 and 19 digits", luhnOf("400012345678") + " " + luhnOf("600012345678901234"), "[CARD] [CARD]"},
	{"19 digits in fours", cut(luhnOf("600012345678901234"), []int{4, 4, 4, 4, 3}, " "), "[CARD]"},
	{"behind a small number", "tentativa 3 {card4}", "tentativa 3 [CARD]"},
	{"behind an area code, a plus, a short number", "11 {card-}, +1 {card4}, telefone 123 {card4}", "11 [CARD], +1 [CARD], telefone 123 [CARD]"},
	{"behind another", "carteira 1234567-{card-}", "carteira [CARD]-[CARD]"},
	{"insurance card", "carteirinha 00123456789 inválida", "carteirinha [CARD] inválida"},
	{"insurance card, short groups", "Carteira nº 0 012 345678901234 5 vencida", "Carteira nº [CARD] vencida"},
	{"insurance card, dotted", "numeroCarteira: 0.012.3456.789012.34-5", "numeroCarteira: [CARD]"},
	{"labelled, wrong check", "card {badcard4}; cartão {badcard}", "card [CARD]; cartão [CARD]"},
	{"with letters", "carteira: AB12345678", "carteira: AB[CARD]"},
	{"two of them", "carteira informada 123456789, cadastro 987654321", "carteira informada [CARD], cadastro [CARD]"},

	// telephones
	{"international", "+55 11 {mobile}, +5511912345678, +55 (11) {land}, +55(11){mobile}", "[PHONE], [PHONE], [PHONE], [PHONE]"},
	{"country code in parentheses", "(+55) 11 {mobile}, +(55) 11 {mobile}", "([PHONE], [PHONE]"},
	{"abroad", "+1 415 555 2671, +1-415-555-2671, +351 912 345 678, +44 20 7946 0958, +54 9 11 1234-5678", "[PHONE], [PHONE], [PHONE], [PHONE], [PHONE]"},
	{"abroad, a status behind it", "+1 415 555 2671 503", "[PHONE] 503"},
	{"one after the other", "+298 123 456 (11) {mobile}, +2025-01-12 11 {mobile}", "[PHONE] [PHONE], +2025-01-12 [PHONE]"},
	{"area code in parentheses", "(11) {mobile}, (11) {land}, (011) {mobile}, (11)912345678, (11) 32345678", "[PHONE], [PHONE], [PHONE], [PHONE], [PHONE]"},
	{"area code before", "11 {mobile}, 11-{mobile}, 11 {land}, 11 912345678, 11.91234.5678, 11 9 1234-5678, 1191234-5678, 113234-5678", "[PHONE], [PHONE], [PHONE], [PHONE], [PHONE], [PHONE], [PHONE], [PHONE]"},
	{"country and area code", "55 11 {mobile}, 5511 {mobile}, 55 11 {land}, 55 11912345678, 551191234-5678", "[PHONE], [PHONE], [PHONE], [PHONE], [PHONE]"},
	{"bare mobile", "11912345678, 011912345678, 5511912345678, 551132345678", "[PHONE], [PHONE], [PHONE], [PHONE]"},
	{"no area code", "ligar para {mobile}", "ligar para [PHONE]"},
	{"labelled", "telefone {land}, celular: 912345678, fone 1132345678, tel:+55-11-{mobile}, whatsapp 1132345678", "telefone [PHONE], celular: [PHONE], fone [PHONE], tel:[PHONE], whatsapp [PHONE]"},
	{"landline, words behind its label", "telefone informado pela mãe foi 1132345678", "telefone informado pela mãe foi [PHONE]"},
	{"American", "(415) 555-2671, 415-555-2671, 415.555.2671, (415) 5552671", "[PHONE], [PHONE], [PHONE], [PHONE]"},
	{"URL-encoded", "tel=%2B55%2011%20{mobile}&x=%2811%29%20{mobile}", "tel=[PHONE]&x=[PHONE]"},
	{"WhatsApp", `{"exists":false,"jid":"5511912345678@s.whatsapp.net","number":"5511912345678"} 5511912345678@c.us`, `{"exists":false,"jid":"[PHONE]","number":"[PHONE]"} [PHONE]`},
	{"other digits", "(１１) ９１２３４－５６７８", "[PHONE]"},

	// e-mail
	{"plain, plus, capitals", "a@b.co, Ana.Souza+tiss@Exemplo.COM.BR; ANA_S@X-Y.ORG", "[E-MAIL], [E-MAIL]; [E-MAIL]"},
	{"quoted and bracketed", `<ana@exemplo.com> "ana@exemplo.com" 'ana@exemplo.com' (ana@exemplo.com).`, `<[E-MAIL]> "[E-MAIL]" '[E-MAIL]' ([E-MAIL]).`},
	{"encoded signs", `ana%40exemplo.com ana&#64;exemplo.com ana\u0040exemplo.com ana＠exemplo.com ana%2Bx%40exemplo.com`, "[E-MAIL] [E-MAIL] [E-MAIL] [E-MAIL] [E-MAIL]"},
	{"accents, encoded and not", "joão@exemplo.com.br jo%C3%A3o%40exemplo.com.br", "[E-MAIL] [E-MAIL]"},
	{"apostrophe", "o'brien@exemplo.com", "[E-MAIL]"},
	{"with numbers in it", "{cpf}@exemplo.com maria.{cpf}@exemplo.com ana1980@x.com", "[E-MAIL] [E-MAIL] [E-MAIL]"},
	{"with many numbers in it", "{cpf}.{cpf}.{cpf}.{cpf}@x.com", "[E-MAIL]"},
	{"with labels in it", "nome.cpf@exemplo.com {bad}", "[E-MAIL] {bad}"},
	{"behind a scheme", "mailto:ana@exemplo.com?subject=x", "mailto:[E-MAIL]?subject=x"},
	{"behind a JSON escape", `linha\nana@exemplo.com\tfim`, `linha\n[E-MAIL]\tfim`},
	{"no top-level domain, labelled", "e-mail: ana@hospital inválido", "e-mail: [E-MAIL] inválido"},
	{"a user's name beside it", "nome: Ana ana.souza@exemplo.com", "nome: [NAME] [E-MAIL]"},
	{"unseen characters in it", "a\u200bna@ex\u200bemplo.com", "[E-MAIL]"},
	{"quoted local part", `x "maria silva"@x, &quot;a b&quot;@exemplo.com "ok"`, `x [E-MAIL], [E-MAIL] "ok"`},
	{"spelled sign", "maria (at) x; Maria.Silva[at]exemplo.com.br, ana arroba, ana (ARROBA) exemplo (ponto) com", "[E-MAIL]; [E-MAIL], ana arroba, [E-MAIL]"},
	{"digits behind the domain", "ana@exemplo.com.br.{cpf}", "[E-MAIL].[CPF]"},

	// names
	{"assigned", "nome: Maria da Silva; nome=maria da silva; Nome - Maria Silva", "nome: [NAME]; nome=[NAME]; Nome - [NAME]"},
	{"behind a role", "Paciente Maria da Silva não encontrado", "Paciente [NAME] não encontrado"},
	{"of a card", "nome do titular do cartão: Ana Souza, titular da carteira Ana", "nome do titular do cartão: [NAME], titular da carteira [NAME]"},
	{"in capitals", "PACIENTE MARIA DA SILVA NAO ENCONTRADO", "PACIENTE [NAME] NAO ENCONTRADO"},
	{"role and label", "nome do paciente: Ana; nome completo da beneficiária: Ana", "nome do paciente: [NAME]; nome completo da beneficiária: [NAME]"},
	{"between label and number", "CPF do beneficiário Maria da Silva inválido: {bad}", "CPF do beneficiário [NAME] inválido: [CPF]"},
	{"behind the number", "paciente {cpf.} Maria da Silva não consta", "paciente [CPF] [NAME] não consta"},
	{"particles, hyphens, apostrophes, initials", "titular Ana de Sá e Costa-Lima; titular J. R. D'Ávila; titular Maria A. Souza", "titular [NAME]; titular [NAME]; titular [NAME]"},
	{"titles", "Dr. Carlos Souza e Sra. Ana", "Dr. [NAME] e Sra. [NAME]"},
	{"quoted", `paciente 'maria da silva', paciente "Souza, Ana"`, `paciente '[NAME]', paciente "[NAME]"`},
	{"English", "patient John Smith not found, patientName: john smith", "patient [NAME] not found, patientName: [NAME]"},
	{"a bare name, two words", `{"name":"Ana Souza"}`, `{"name":"[NAME]"}`},
	{"up to the next label", "nome: Ana Souza CPF {bad}", "nome: [NAME] CPF [CPF]"},
	{"up to the next key", "nome=Ana status=ERRO", "nome=[NAME] status=ERRO"},
	{"decomposed accents", "paciente Joa\u0303o Conceic\u0327a\u0303o não", "paciente [NAME] não"},

	// birth dates, other labelled fields
	{"dates", "data de nascimento 12/03/1980; nascida em 1980-03-12; Nasc.: 12.03.80; dt_nascimento=12031980", "data de nascimento [BIRTHDATE]; nascida em [BIRTHDATE]; Nasc.: [BIRTHDATE]; dt_nascimento=[BIRTHDATE]"},
	{"DN", "DN: 01/02/1980, dn 01.02.80", "DN: [BIRTHDATE], dn [BIRTHDATE]"},
	{"written out", "nascido em 12 de março de 1980, birth date 12-Mar-1980", "nascido em [BIRTHDATE], birth date [BIRTHDATE]"},
	{"with a time", `"dataNascimento":"1980-03-12T00:00:00-03:00"`, `"dataNascimento":"[BIRTHDATE]"`},
	{"with a name before it", "nascimento do paciente Ana (12/03/1980)", "nascimento do paciente [NAME] ([BIRTHDATE])"},
	{"two of them", "nascimento divergente: informado 12/03/1980, cadastro 13/03/1980", "nascimento divergente: informado [BIRTHDATE], cadastro [BIRTHDATE]"},
	{"RG", "RG 12.345.678-9, 12.345.678-9, RG MG-12.345.678, prontuário 12345, matrícula: 123456", "RG [ID], [ID], RG MG-[ID], prontuário [ID], matrícula: [ID]"},
	{"a person's number", "beneficiário 0012345678; idPaciente=123456; código do beneficiário: 123456", "beneficiário [ID]; idPaciente=[ID]; código do beneficiário: [ID]"},
	{"addresses", `endereco="Rua das Flores, 123" <logradouro>Av. Central, 1</logradouro> CEP 01310-100`, `endereco="[ADDRESS]" <logradouro>[ADDRESS]</logradouro> CEP [ADDRESS]`},
	{"address in CDATA", "<logradouro><![CDATA[Av. Central, 1]]></logradouro>", "<logradouro><![CDATA[[ADDRESS]]]></logradouro>"},

	// validators
	{"Xerces, element", "cvc-type.3.1.3: The value 'MARIA' of element 'ans:nomeBeneficiario' is not valid.", "cvc-type.3.1.3: The value '[NAME]' of element 'ans:nomeBeneficiario' is not valid."},
	{"Xerces, type", "Value '1234567890' is not facet-valid with respect to pattern '[0-9]{11}' for type 'st_CPF'.", "Value '[CPF]' is not facet-valid with respect to pattern '[0-9]{11}' for type 'st_CPF'."},
	{"Xerces, attribute", `The value "AB 123456" of attribute "numeroCarteira"`, `The value "[CARD]" of attribute "numeroCarteira"`},
	{".NET", "The 'http://www.ans.gov.br/padroes/tiss/schemas:nomeBeneficiario' element is invalid - The value 'Maria' is invalid", "The 'http://www.ans.gov.br/padroes/tiss/schemas:nomeBeneficiario' element is invalid - The value '[NAME]' is invalid"},
	{"libxml", "Element '{http://www.ans.gov.br/padroes/tiss/schemas}numeroCarteira': [facet 'pattern'] The value '123456' is not accepted", "Element '{http://www.ans.gov.br/padroes/tiss/schemas}numeroCarteira': [facet 'pattern'] The value '[CARD]' is not accepted"},
	{"Portuguese", "O valor 'ana@hospital' do campo 'email' é inválido; valor 'R. X, 1' do elemento 'logradouro'", "O valor '[E-MAIL]' do campo 'email' é inválido; valor '[ADDRESS]' do elemento 'logradouro'"},
	{"a person's, by the type's name", "value '12345678' for type 'ct_beneficiarioDados'", "value '[ID]' for type 'ct_beneficiarioDados'"},

	// the realistic whole
	{"RN-BIL-005 §9.3", "INVALID_PATIENT_DATA - CPF inválido: {bad.}", "INVALID_PATIENT_DATA - CPF inválido: [CPF]"},
	{"portal's answer", "Guia 12345678901234567890: beneficiário MARIA DA SILVA, carteira 00987654321, CPF {bad} - 1206 CPF/CNPJ inválido. Protocolo {prot}, R$ 1.504,00", "Guia 12345678901234567890: beneficiário [NAME], carteira [CARD], CPF [CPF] - 1206 CPF/CNPJ inválido. Protocolo {prot}, R$ 1.504,00"},
}

func TestPersonalDataIsTaken(t *testing.T) {
	for _, c := range taken {
		text, want := fill(c.text), fill(c.want)
		if got := redact.Text(text); got != want {
			t.Errorf("%s:\n text %q\n got  %q\n want %q", c.why, text, got, want)
		}
	}
}
