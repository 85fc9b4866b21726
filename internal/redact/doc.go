// Package redact takes personal data and secrets out of error text.
//
// It stands before every sink: log, incident message, metric, store, audit, event, page (LGPD art. 6, VIII;
// RN-BIL-005 §10.1, RN-BIL-004 §10.2). It is pure and bounded: no state, no clock, no I/O, time in
// proportion to the text, safe for concurrent use. A placeholder names the kind of what it replaces: [CPF], [CNS],
// [E-MAIL], [PHONE], [CARD], [NAME], [BIRTHDATE], [ID], [ADDRESS], [USER], [SECRET].
//
// # How a text is read
//
// By logical characters. Decimal digits of every script, full-width characters, all kinds of spaces, hyphens and
// quotation marks count as the ASCII ones; zero-width characters, bidi and other controls, combining marks and ANSI
// sequences between two characters do not count. Escapes count as what they stand for, nested ones too: JSON (\",
// \\\", \u00e3), XML and HTML (&quot;, &#64;, &atilde;, &amp;quot;), percent-encoding (%22, %40, %C3%A3, %2522; not of
// letters and digits). Bytes that are no UTF-8 count as ISO-8859-1, the encoding of TISS messages. Words are known
// without case and accents, alone, in camel case and in snake case (numeroCarteira, NR_CPF).
//
// A number is groups of digits with up to three separators between two: blank, "." "-" "/" "," "+" "_" "*"
// "|" "~" and parentheses. A label stands *right before* a number if only punctuation and connecting
// words (nº, do, inválido, not found, …) stand between, and *near* it if no more than eight words do.
//
// # What is taken
//
//   - CPF: 3-3-3-2 digits with any separators, and 9-2 with a hyphen, whatever the check digits; 11 digits bare,
//     spelled singly or cut at the printed places, by their check digits; near a label (before it, or as in "… não é
//     um CPF válido"), 11 digits whatever they are; right behind a label, 8 to 14 digits (zeros lost, digits too many;
//     dates stay). A comma is a decimal sign unless a hyphen follows: 123.456.789,09 is an amount.
//   - CNS: 15 digits that begin with 1, 2, 7, 8 or 9 and pass modulo 11, bare or as 3-4-4-4, 3-12, 11-4;
//     3-4-4-4 whatever the check; labelled as a CPF is, 11 to 16 digits right behind the label.
//   - Cards: 13 to 19 digits that pass Luhn, bare or in fours, 4-6-5, 4-6-4; right behind a label
//     (carteirinha, numeroCarteira, cartão, card) 6 to 20 digits, near one 13 to 20.
//   - Telephones: Brazilian ones with their area code (it must exist), bare mobiles too, with 55 or 0
//     before; land lines with a hyphen or parentheses; 9dddd-dddd; "+" and 8 to 15 digits; 415-555-2671,
//     (415) 555-2671; right behind a label 7 to 15 digits, near one 10 to 13. WhatsApp accounts.
//   - E-mail: a local part, "@" and a domain that ends in a label of letters; behind a label any domain. A quoted
//     local part ("maria silva"@x), a sign that is spelled out (maria (at) x). In a URL's authority all before "@" is
//     the [USER], and so what stands behind curl -u and jdbc:oracle:thin.
//   - Names behind nome, name, patientName, paciente, beneficiário, titular, Dr., Sra. and the like: words
//     that begin with a capital, with the particles between them; behind ":", "=", ">" or a quotation mark
//     small letters too. The name ends before a word of messages (não, inválido, timeout, …) or another
//     label; so "Paciente não encontrado" stays. A bare "name", or a hyphen after the label, needs two words.
//   - Birth dates behind nascimento, dataNascimento, birthDate, …: any date, 6 to 8 digits, or with a
//     month's name. RG (12.345.678-9). Behind prontuário, RG, matrícula, passaporte, PIS, CNH: 3 to 15
//     digits; behind paciente, beneficiário, …: 6 to 20. Quoted or tagged endereço, logradouro; CEP.
//   - What a schema validator quotes: The value 'MARIA' of element 'ans:nomeBeneficiario'.
//   - Secrets: what is assigned to senha, password, client_secret, x-api-key and the like (senha=…, "senha":"…",
//     <senhaPrestador>…, --password …), up to where the value ends as its notation ends it; without a sign between them
//     what looks like no word (senha Abc1 recusada). Behind vague names (token, chave, sessão, assinatura) what is long
//     or mixed. Credentials of Authorization, Basic and Bearer; values of cookies; JSON web tokens, private keys and
//     vendors' tokens wherever they stand. Words that tell what is wrong stay: "senha: inválida", SenhaInvalida.
//
// # What stays
//
//   - Claim ids: all of a token that begins with CLM-, valid CPF at its end or not.
//   - The number right behind protocolo, guia, lote, NSU (or each number of the list behind a plural), but
//     for a CPF with its punctuation; six digits behind registro or ANS; 13 to 19 digits behind key, job,
//     instance (an engine's) or timestamp.
//   - Codes, HTTP statuses, line numbers, ANS registries: too short, unless right behind a person's label.
//   - Amounts (behind R$ and the like, or with decimals), dates, times, RFC 3339 instants, 20250112104000.
//   - UUIDs, hashes of 16 hexadecimal digits and more, IPv4 addresses and ports.
//   - Hosts and paths of URLs. In a path only a punctuated CPF, an e-mail address and a number right behind
//     its label (/cpf/12345678909) are taken; the query is text like any other.
//   - CNPJ: a company's is public; it goes only right behind a person's label ("CPF: 12.345.678/0001-95"),
//     not behind "CPF/CNPJ".
//
// Where a number may be either, privacy wins: eleven digits whose check digits fit are a CPF even if they
// are some other system's number.
//
// # What is not found
//
// Names without a label, in small letters behind a label without a sign, or after a line break within the
// name; invalid CPFs of eleven bare digits without a label; data in base64, quoted-printable or compressed
// form, or spelled in words; health data (CID, procedure); passwords that look like words without a sign before them.
//
// # Reading twice
//
// Text(Text(s)) is Text(s). State changes only by what stays in the text and by placeholders; a datum changes it
// as its placeholder does; what stays whole is decided by itself alone; and what looks ahead sees a placeholder as
// it saw the datum, or takes nothing.
package redact
