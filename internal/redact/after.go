package redact

import (
	"strings"
	"unicode"
)

// Labels that come after what they label: "12345678900 não é um CPF válido", and what validators of XML
// schemas write: "The value 'MARIA' of element 'ans:nomeBeneficiario' is not valid". Where a placeholder stands
// on the way to the label nothing is taken, so that a second reading takes nothing more.

const (
	maxQuoted = 200 // bytes of a quoted value
	maxAway   = 200 // bytes to the name of its element
	leastSeen = 6   // digits that a quoted number has at least
)

// labelledAfter returns the kind of a number of 11 or 15 digits whose label follows within the sentence.
func (c *cluster) labelledAfter(s string) (kind, int) {
	switch size, end := c.count(1), c.groups[0].end; {
	case size == 11 && isLabelAfter(s, end, cpf):
		return cpf, 1
	case size == 15 && isLabelAfter(s, end, cns):
		return cns, 1
	}
	return none, 0
}

// isLabelAfter reports whether one of the next few words labels a number as a k, but not a number behind it.
func isLabelAfter(s string, i int, k kind) bool {
	for words := 0; i < len(s) && words < near; {
		r, size := charAt(s, i)
		if !unicode.IsLetter(r) {
			if r != unseen && !strings.ContainsRune(` "'(),:-=`, r) {
				return false
			}
			i += size
			continue
		}
		w := wordAt(s, i)
		if w.role == 0 && w.camel {
			w = humpAt(s, i, w.end)
		}
		if w.role&(labels|keeps|keepsLong) != 0 {
			return w.role&labels != 0 && (w.kind == k || w.kind == taxpayer && k == cpf) && !isBeforeNumber(s, w.end)
		}
		words++
		i = w.end
	}
	return false
}

// isBeforeNumber reports whether a number or placeholder is next at s[i:].
func isBeforeNumber(s string, i int) bool {
	for range 2 * maxGap {
		r, size := seenAt(s, i)
		if isDigit(r) || r == '[' {
			return true
		}
		if size == 0 || unicode.IsLetter(r) {
			return false
		}
		i += size
	}
	return true
}

// takeQuoted redacts the value that w, "value" or "valor", says is quoted next, if its field is personal.
func (s *scanner) takeQuoted(w *word) bool {
	if w.role&quotes == 0 || s.pos < s.pathEnd {
		return false
	}
	start, end, next := quoted(s.in, w.end)
	if end <= start {
		return false
	}
	k := fieldAfter(s.in, next)
	if !fits(s.in[start:end], k) {
		if k = s.state.field; !fits(s.in[start:end], k) {
			return false
		}
	}
	s.state.meet(w)
	for s.pos = w.end; s.pos < start; {
		r, size := charAt(s.in, s.pos)
		s.separator(r, size)
	}
	s.redact(start, end, k)
	return true
}

// quoted finds the text that follows at s[i:] in quotation marks, and what is behind it. start is 0 where
// there is no quotation mark, end is 0 where none ends the text soon or a placeholder stands in it.
func quoted(s string, i int) (start, end, next int) {
	r, size := seenAt(s, i)
	if r == ' ' || r == ':' || r == '=' {
		i += size
		r, size = seenAt(s, i)
	}
	if r != '\'' && r != '"' {
		return 0, 0, 0
	}
	start = i + size
	for end = start; end < len(s) && end-start <= maxQuoted; {
		sign, n := charAt(s, end)
		if sign == r && n == size {
			return start, end, end + n
		}
		if sign == '\n' || sign == '[' && placeholderAt(s[end:]) != none {
			break
		}
		end += n
	}
	return start, 0, 0
}

// fieldAfter returns the kind of the element, attribute or type that is named in the rest of the sentence.
func fieldAfter(s string, i int) kind {
	for end := min(len(s), i+maxAway); i < end; {
		r, size := charAt(s, i)
		switch {
		case unicode.IsLetter(r):
			w := wordAt(s, i)
			if w.role&fields != 0 {
				if from, to, _ := quoted(s, w.end); from > 0 {
					return fieldKind(s[from:max(from, to)])
				}
			}
			i = w.end
			continue
		case r == '\n', r == ';', r == '[' && placeholderAt(s[i:]) != none, r == '.' && strings.HasPrefix(s[i:], ". "):
			return none
		}
		i += size
	}
	return none
}

// fieldKind returns the kind of the field called name, without its namespace: st_CPF, numeroCarteira.
func fieldKind(called string) kind {
	called = called[strings.LastIndexAny(called, ":}")+1:]
	person := none
	for i := 0; i < len(called); {
		if r, size := charAt(called, i); !unicode.IsLetter(r) {
			i += size
			continue
		}
		w := wordAt(called, i)
		if w.role == 0 && w.camel {
			w = humpAt(called, i, w.end)
		}
		i = w.end
		switch {
		case w.role&secrets != 0:
			return secret
		case w.role&(labels|names) != 0:
			return w.kind
		case w.role&(keeps|keepsLong|registry) != 0:
			return none
		case w.role&persons != 0:
			person = w.kind
		}
	}
	return person
}

// fits reports whether value may be a datum of kind k.
func fits(value string, k kind) bool {
	switch k {
	case none:
		return false
	case secret:
		return !isNothing(value)
	case name, mail, address:
		i := strings.IndexFunc(value, unicode.IsLetter)
		return i >= 0 && (k == mail || !partAt(value, i).bad)
	}
	digits := 0
	for i := 0; i < len(value); {
		r, size := charAt(value, i)
		if isDigit(r) {
			digits++
		}
		i += size
	}
	return digits >= min(leastSeen, reaches[k].least)
}
