package redact

import (
	"strings"
	"unicode"
)

// maxNameWords of one name.
const maxNameWords = 12

// takeName redacts the name that begins with w, if one is expected.
func (s *scanner) takeName(w *word) bool {
	if s.state.name == noName || s.pos < s.pathEnd || w.role&^stops != 0 && !isInitial(s.in, w) ||
		w.inner || s.in[w.start-1] == '_' { // nomeArquivo, nome_arquivo

		return false
	}
	end := s.nameEnd(w.start)
	if end == 0 {
		return false
	}
	s.redact(w.start, end, name)
	return true
}

// nameEnd returns where the name that begins at i ends; 0 where none does. Small letters will do behind a
// sign that assigns.
func (s *scanner) nameEnd(i int) int {
	listed := opener(s.in[:i]) != 0
	end, words, need := 0, 0, int(s.state.name)
	for range maxNameWords {
		p := partAt(s.in, i)
		if p.bad || p.key || !p.capital && !p.particle && !s.state.assigns {
			break
		}
		if !p.particle {
			words++
			end = p.end
		}
		if i = nextPart(s.in, p, listed); i == 0 {
			break
		}
	}
	if words < need {
		return 0
	}
	return end
}

// part of a name: Maria, D'Ávila, Costa-Lima, J.
type part struct {
	end      int
	capital  bool
	particle bool
	bad      bool // no part of a name
	key      bool // "=" follows
	initial  bool
}

func partAt(s string, i int) part {
	first, _ := charAt(s, i)
	p := part{capital: isCapital(first), particle: true}
	for {
		w := wordAt(s, i)
		p.initial = isInitial(s, &w)
		p.particle = p.particle && w.role&particle != 0
		p.end = w.end
		if isForeign(s, &w) && !p.initial {
			p.bad = true
			return p
		}
		r, size := seenAt(s, p.end)
		if r == '.' || r == '-' || r == '\'' {
			if next, n := seenAt(s, p.end+size); n > 0 && unicode.IsLetter(next) {
				i = until(s, p.end+size, isSeen)
				continue
			}
		}
		p.bad = r == '_' || r == '@'
		p.key = r == '='
		return p
	}
}

// isForeign reports whether w, or a word in it, is never part of a name.
func isForeign(s string, w *word) bool {
	const never = labels | persons | names | vague | keeps | keepsLong | registry | companies | stops | currency | claim
	if w.role != 0 || !w.camel {
		return w.role&never != 0
	}
	for i := w.start; i < w.end; {
		h := humpAt(s, i, w.end)
		if h.role&stops != 0 {
			return true
		}
		i = h.end
	}
	return false
}

// isInitial recognises the "A." of "Maria A. Silva".
func isInitial(s string, w *word) bool {
	r, _ := charAt(s, w.start)
	return w.end-w.start == 1 && isCapital(r) && strings.HasPrefix(s[w.end:], ".")
}

// nextPart returns where the part behind p begins: after blanks ('+' in a form), a comma too if listed; 0
// where there is none.
func nextPart(s string, p part, listed bool) int {
	i, blanks := p.end, 0
	for i < len(s) && blanks < maxGap {
		r, w := charAt(s, i)
		switch {
		case r == unseen:
		case r == ' ' || r == '+':
			blanks++
		case r == '.' && p.initial && i == p.end:
		case r == ',' && listed:
		case blanks > 0 && unicode.IsLetter(r):
			return i
		default:
			return 0
		}
		i += w
	}
	return 0
}

// opener returns the sign that ends s and opens a value; 0 for another.
func opener(s string) rune {
	for _, o := range [...]struct {
		text string
		sign rune
	}{{`"`, '"'}, {`'`, '\''}, {">", '>'}, {"[CDATA[", ']'}, {"&quot;", '"'}, {"%22", '"'}, {"&gt;", '>'}, {"&#34;", '"'},
		{"%3E", '>'}, {"%27", '\''}, {`\u0022`, '"'}, {`\u003e`, '>'}, {"&apos;", '\''}, {"&#39;", '\''}} {
		if strings.HasSuffix(s, o.text) {
			return o.sign
		}
	}
	return 0
}
