package decision

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrorClassification is the value object of RN-BIL-005 §12.2, with R4's labels.
type ErrorClassification string

// The classifications.
const (
	Transient ErrorClassification = "TRANSIENT"
	Permanent ErrorClassification = "PERMANENT"
	Unknown   ErrorClassification = "UNKNOWN"
)

// Match is what classification found: the rule, or Unknown with an empty Name.
type Match struct {
	Classification ErrorClassification
	Name           string
	Reason         Reason
	Team           Team
}

// Classify is analyzeError of RN-BIL-005 §12.4: the first permanent rule that matches, else the first
// transient one, else Unknown (R2, R3). The text is taken as it came.
func (p *Policy) Classify(text string) Match {
	var room [256]byte // most messages fit, and then nothing but the string itself is allocated
	buffer := room[:0]
	if len(text) > len(room) {
		buffer = make([]byte, 0, len(text))
	}
	norm := string(appendNormalised(buffer, text))
	if r := firstMatch(p.Permanent, text, norm); r != nil {
		return Match{Permanent, r.Code, r.Reason, r.Team}
	}
	if r := firstMatch(p.Transient, text, norm); r != nil {
		return Match{Transient, r.Code, r.Reason, r.Team}
	}
	return Match{Classification: Unknown, Reason: ReasonUnknown}
}

func firstMatch(rules []Rule, text, norm string) *Rule {
	for i := range rules {
		if rules[i].matches(text, norm) {
			return &rules[i]
		}
	}
	return nil
}

func (r *Rule) matches(text, norm string) bool {
	if isNumber(r.Code) {
		return containsNumber(text, r.Code)
	}
	return strings.Contains(norm, r.Code)
}

func isNumber(code string) bool {
	for i := range len(code) {
		if !isDigit(code[i]) {
			return false
		}
	}
	return code != ""
}

// appendNormalised upper-cases text and makes every run of characters outside A–Z and 0–9 one '_' (R3).
func appendNormalised(dst []byte, text string) []byte {
	gap := false
	for i := 0; i < len(text); {
		c := text[i]
		size := 1
		if c >= utf8.RuneSelf {
			c, size = upperASCII(text[i:])
		}
		i += size
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if 'A' <= c && c <= 'Z' || isDigit(c) {
			dst, gap = append(dst, c), false
		} else if !gap {
			dst, gap = append(dst, '_'), true
		}
	}
	return dst
}

// upperASCII is the upper case of the first rune where that is an ASCII letter (ſ is S), else '_',
// and the rune's size.
func upperASCII(s string) (byte, int) {
	r, size := utf8.DecodeRuneInString(s)
	if u := unicode.ToUpper(r); u < utf8.RuneSelf {
		return byte(u), size
	}
	return '_', size
}

// containsNumber tells whether number stands in text as a whole number: no digit beside it, nor one of
// '.', ',', '-' with a digit behind it (R3). So 503 is not in "15037", "503.504.111-22" or "1.504,00".
func containsNumber(text, number string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], number)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(number)
		before := func(n int) byte { return at(text, i-n) }
		after := func(n int) byte { return at(text, end+n-1) }
		if !joined(before) && !joined(after) {
			return true
		}
		from = i + 1
	}
}

// joined tells whether the character one step away, or the one behind a separator, is a digit.
func joined(step func(int) byte) bool {
	switch c := step(1); c {
	case '.', ',', '-':
		return isDigit(step(2))
	default:
		return isDigit(c)
	}
}

func at(s string, i int) byte {
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
