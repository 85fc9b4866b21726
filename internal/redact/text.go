// Package redact takes personal data and secrets out of error text, before every sink: log, incident, metric, journal,
// event, page (LGPD art. 6, VIII; RN-BIL-005 §10.1, RN-BIL-004 §10.2). It is pure: no clock, no I/O, time in proportion
// to the text, safe for concurrent use.
//
// A text is read through text.Reading, so that escapes, entities and other scripts' digits hide nothing, and split into
// tokens: words, digits, signs. words.txt says what a word tells of its neighbours, signs.txt which signs are read as
// others, numbers.txt how numbers are written, notations.txt how other data are that show by what stands there, and
// patterns.txt what else has a form.
//
// Taken are numbers that their check digits or form prove, and numbers of the length that the label before them allows;
// e-mail addresses; users and passwords in URLs; names behind a label; dates behind "nascimento"; addresses; values
// that a validator quotes or columns label; names and birth dates beside a person's number in a row; secrets; base64
// that holds such data; and what was found once, wherever it stands again.
//
// What stays: claims' ids; the number right behind protocolo, guia, lote or NSU, except a CPF with its punctuation;
// engines' keys, UUIDs, hashes, IP addresses; amounts, dates, times, codes; hosts and paths of URLs; companies' CNPJ;
// words that tell what is wrong. Where a number may be either, privacy wins.
//
// It does not find names without a label, data spelled in words, health data, or passwords that look like words without
// a sign before them.
package redact

import (
	"math"
	"strings"
	"unicode/utf8"

	"retry-worker/internal/text"
)

const ellipsis = "…"

// Text returns s with a placeholder that names the kind in place of each personal datum and secret. The package comment
// says what is taken and what stays. Text(Text(s)) is Text(s); it is valid UTF-8 if s is; it takes time in proportion
// to len(s).
func Text(s string) string {
	r := readers.Get().(*reader)
	for range maxPasses { // what comes out is read again until nothing is found in it
		if r.read(s); len(r.edits) == 0 {
			break
		}
		s = r.apply()
	}
	r.in = ""
	if cap(r.Chars) <= maxKept {
		readers.Put(r)
	}
	return s
}

// Line is Text(s) as one line of at most max bytes for a sink that holds lines: a log field, an incident's message. It
// is inert, as text.Inert makes it. A longer line is cut at the end of a character, never within a placeholder, and
// ends in "…"; if not even that fits, it is empty. The cut comes after the redaction, so that no part of a datum is
// left before it. Of a long s only the beginning is read.
func Line(s string, max int) string {
	const (
		ahead = 1 << 15 // bytes that are read beyond those that may be needed
		torn  = 1 << 10 // at the end of what was read, where half a datum may stand
	)
	if max <= 0 {
		return ""
	}
	if max > math.MaxInt/8 || len(s) <= 4*max+ahead {
		return cut(text.Inert(Text(s)), max, false)
	}
	begin := Text(s[:4*max+ahead])
	return cut(text.Inert(begin[:len(begin)-min(len(begin), torn)]), max, true)
}

// HoldsOwn reports whether s may hold a secret of this program's own: a token of people, or of a webhook.
func HoldsOwn(s string) bool {
	s = strings.ToLower(s)
	return strings.Contains(s, "rwt_") || strings.Contains(s, "whsec_")
}

// WithoutKinds returns s, which Text or Line made, with # in place of each placeholder, as a datum's kind may depend on
// its digits.
func WithoutKinds(s string) string { return anonymous.Replace(s) }

var anonymous = func() *strings.Replacer {
	var pairs []string
	for _, k := range marked {
		pairs = append(pairs, k.placeholder, "#")
	}
	return strings.NewReplacer(pairs...)
}()

// cut shortens s to max bytes. more tells that what followed s is left out already.
func cut(s string, max int, more bool) string {
	if len(s) <= max && !more {
		return s
	}
	end := min(len(s), max-len(ellipsis))
	if end < 0 {
		return ""
	}
	for 0 < end && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	if open := strings.LastIndexByte(s[:end], '['); open >= 0 {
		for _, k := range marked {
			if strings.HasPrefix(s[open:], k.placeholder) && open+len(k.placeholder) > end {
				end = open
			}
		}
	}
	return s[:end] + ellipsis
}
