// Package redact takes personal data and secrets out of error text.
//
// It stands before every sink: log, incident message, metric, store, audit, event, page (LGPD art. 6, VIII;
// RN-BIL-005 §10.1, RN-BIL-004 §10.2). It is pure: no clock, no I/O, time in proportion to the text, safe for
// concurrent use. A placeholder names the kind of what it replaces: [CPF], [CNS], [E-MAIL], [PHONE], [CARD], [NAME],
// [BIRTHDATE], [ID], [ADDRESS], [USER], [SECRET].
//
// A text is read as text.Reading has it, so that escapes, entities, other scripts' digits and characters that nobody
// sees hide nothing, and split into tokens: words, groups of digits, and what stands between. The lexicon says what a
// word does to what follows it. A label stands right before a number if only punctuation and connecting words (nº, do,
// inválido, not found, …) stand between, and near it if no more than eight words do.
//
// # What is taken
//
//   - Numbers whose check digits prove them a CPF, CNS or card, and those written as only a CPF, CNS, RG or telephone
//     number is (shapes); behind a label what is as long as its numbers are (kinds), whatever the check digits.
//   - E-mail addresses, users and passwords in URLs, a person's user name (usuário 'ana.souza').
//   - Names behind paciente, nome, Dr. and the like: words that begin with a capital; behind a sign that assigns, and
//     where a given name is among the first, small letters too. A name ends before a word of messages or a label.
//     Names on the line below a line of labels, in a mail's head and below its farewell, behind "olá" or "ligar para",
//     of users' folders, in HL7, FHIR, LDAP and SAML (notations).
//   - Dates behind nascimento. Addresses behind endereço that are quoted, tagged or begin with a street's word; CEP.
//   - What a schema validator quotes: The value 'MARIA' of element 'ans:nomeBeneficiario'. What the columns of a table,
//     an INSERT, a condition or a key label by their place.
//   - Secrets: what is assigned to senha, client_secret, x-api-key and the like as far as its notation says, what looks
//     like no word behind them without a sign; credentials of headers, cookies, web tokens, private keys, keys.
//
// # What stays
//
//   - Claim ids, and the number right behind protocolo, guia, lote, NSU, but for a CPF with its punctuation; engines'
//     keys and ANS registries behind their words; UUIDs, hashes, IPv4 addresses.
//   - Amounts, dates, times, codes, HTTP statuses: too short, unless right behind a person's label.
//   - Hosts and paths of URLs, but for what is labelled there (/cpf/12345678909) and what is punctuated as a CPF.
//   - CNPJ, unless right behind a person's label; words that tell what is wrong with a secret: senha: inválida.
//
// Where a number may be either, privacy wins.
//
// # What is not found
//
// Names without a label; unusual ones in small letters without a sign; data in base64, compressed, or spelled in words;
// health data (CID, procedure); passwords that look like words without a sign before them.
package redact
