package redact

import (
	"strings"
	"unicode"
)

// word is a run of letters as the lexicon knows it.
type word struct {
	start, end int
	entry
	camel bool // there may be several words in it: numeroCarteira, CPFBeneficiario
	inner bool // it is one of several, and not the first
}

// smallBit tells a small ASCII letter from its capital.
const smallBit = 0x20

// wordAt reads the letters at s[i:]; there is one at least.
func wordAt(s string, i int) word {
	w := word{start: i}
	h := hashSeed
	var last, humps byte
	for i < len(s) && classes[s[i]] == letter {
		c := s[i]
		h = hashByte(h, c|smallBit)
		humps |= last &^ c
		last = c
		i++
	}
	w.end = i
	if i < len(s) && classes[s[i]] == escape {
		h, last, humps = w.more(s, h, last, humps)
	}
	w.entry = dictionary[h]
	w.camel = humps&smallBit != 0 || w.end-w.start > 2 && s[w.start+1]&smallBit == 0 && last&smallBit != 0
	return w
}

// more reads on where a letter may be written as anything but one ASCII byte.
func (w *word) more(s string, h uint64, last, humps byte) (uint64, byte, byte) {
	for i := w.end; i < len(s); {
		r, size := charAt(s, i)
		i += size
		if r == unseen {
			continue
		}
		if !unicode.IsLetter(r) {
			break
		}
		f := fold(r)
		h = hashByte(h, f)
		if isCapital(r) {
			f &^= smallBit
		}
		humps |= last &^ f
		last = f
		w.end = i
	}
	return h, last, humps
}

// humpAt returns the first of the words that s[i:end] is made of: it ends before a capital that follows a small letter
// or that a small letter follows, as in numero|CPF|Beneficiario.
func humpAt(s string, i, end int) word {
	start, last, capitals, small := i, i, 0, false
	for i < end {
		r, size := charAt(s, i)
		switch capital := isCapital(r); {
		case r == unseen:
			i += size
			continue
		case capital && small:
			end = i
		case !capital && capitals > 1:
			end = last
		case capital:
			capitals++
		default:
			capitals, small = 0, true
		}
		last = i
		i += size
	}
	return word{start: start, end: end, entry: wordAt(s[:end], start).entry}
}

const (
	maxAddress = 200 // bytes
	maxPrefix  = 8   // letters before the digits of a number
)

// word takes the letters at pos; an identifier of several words one by one.
func (s *scanner) word() {
	if s.takeOpenSecret() || s.spelled && s.takeSpelled() {
		return
	}
	s.begin()
	w := wordAt(s.in, s.pos)
	if w.role != 0 || !w.camel {
		s.take(&w)
		return
	}
	for start, end := w.start, w.end; s.pos < end; {
		w = humpAt(s.in, s.pos, end)
		w.inner = w.start > start
		s.take(&w)
	}
}

func (s *scanner) take(w *word) {
	if (w.role&logons != 0 || w.start > 0 && s.in[w.start-1] == '-') && s.takeLogon(w) {
		return
	}
	if s.takeSecret(w) || s.takeClaim(w) || s.takeKept(w) || s.takeAddress(w) || s.takeName(w) || s.takeQuoted(w) {
		return
	}
	direct := s.state.direct && s.isPrefix(w)
	s.state.meet(w)
	s.state.direct = s.state.direct || direct && s.state.label != none
	s.pos = w.end
}

// isPrefix reports whether w is the letters of a number: MG-12.345.678.
func (s *scanner) isPrefix(w *word) bool {
	rest := strings.TrimPrefix(s.in[w.end:], "-")
	return w.role == 0 && w.end-w.start <= maxPrefix && rest != "" && classes[rest[0]] == digit
}

// takeClaim passes over a claim's id (CLM-001-1234567890), whatever its digits are.
func (s *scanner) takeClaim(w *word) bool {
	if w.role&claim == 0 || !strings.HasPrefix(s.in[w.end:], "-") {
		return false
	}
	s.pass(claimEnd(s.in, w.end))
	return true
}

// takeKept passes over the letters and digits of a protocol number: PRT-2025-123.
func (s *scanner) takeKept(w *word) bool {
	if s.state.keep != keepOne && s.state.keep != keepList || !s.isPrefix(w) {
		return false
	}
	i := w.end
	if s.in[i] == '-' {
		i++
	}
	if isPunctuated(s.in[i:]) {
		return false
	}
	s.pass(keptEnd(s.in, i))
	return true
}

// takeAddress redacts the whole of a quoted or tagged address that begins with w.
func (s *scanner) takeAddress(w *word) bool {
	if s.state.label != address || !s.state.direct || s.pos < s.pathEnd {
		return false
	}
	closer := opener(s.in[:w.start])
	switch closer {
	case 0:
		return false
	case '>':
		closer = '<'
	}
	for i := w.start; i < len(s.in) && i < w.start+maxAddress; {
		r, size := charAt(s.in, i)
		switch r {
		case closer:
			s.redact(w.start, i, address)
			return true
		case ':', '@', '[', '\n': // more than an address, or read before
			return false
		}
		i += size
	}
	return false
}
