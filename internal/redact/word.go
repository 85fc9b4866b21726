package redact

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
		h, humps = w.more(s, h, last, humps)
	}
	w.entry = dictionary[h]
	w.camel = humps&smallBit != 0 || w.end-w.start > 2 && s[w.start+1]&smallBit == 0 && last&smallBit != 0
	return w
}

// more reads on where a letter may be written as anything but one ASCII byte.
func (w *word) more(s string, h uint64, last, humps byte) (uint64, byte) {
	for i := w.end; i < len(s); {
		r, size := charAt(s, i)
		i += size
		if r == unseen {
			continue
		}
		if !isLetter(r) {
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
	return h, humps
}

// humpAt is the first of the words that s[i:end] is made of: it ends before a capital that follows a small letter or
// that a small letter follows, as in numero|CPF|Beneficiario.
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
