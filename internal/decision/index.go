package decision

import (
	"bytes"
	"math"
	"strings"
)

// index finds many short texts in a long one in a single pass, whose cost does not grow with their number: each is
// known by one gram of its own, a part of 8 bytes, or of 4 where it has none, and only where that stands in the long
// text it is compared.
type index struct {
	// tails has the last 4 bytes of every gram, shorts and longs have the grams.
	tails, shorts, longs bloom
	needles              map[uint64][]needle
}

const (
	longGram  = 8
	shortGram = 4 // also the shortest text that can be found
)

// needle is one text to find, as kind wants it to stand; number is for who asks. The gram of size bytes stands at offset
// in it.
type needle struct {
	text         string
	kind         needleKind
	number       int
	offset, size int
}

type needleKind uint8

const (
	byCode     needleKind = iota // anywhere in the normal form
	byPhrase                     // whole words of the folded form
	byPrefix                     // words of the folded form, the last with any ending
	ofPattern                    // anywhere in the folded form
	aWord                        // a literal, as byPhrase
	aBeginning                   // a literal, as byPrefix
)

// add makes n's text, at least shortGram long, findable. Without gaps its gram is a part of one word, if it has a word
// so long; ok tells that it is.
func (x *index) add(n needle, gaps bool) (ok bool) {
	for _, size := range [...]int{longGram, shortGram} {
		if n.offset, ok = x.rarest(n.text, size, gaps); ok {
			n.size = size
			break
		}
	}
	if !ok {
		n.size = shortGram
		n.offset, _ = x.rarest(n.text, shortGram, true)
	}
	x.put(n)
	return ok
}

func (x *index) put(n needle) {
	if x.needles == nil {
		x.needles = make(map[uint64][]needle)
	}
	gram := gramOf(n.text[n.offset : n.offset+n.size])
	x.needles[gram] = append(x.needles[gram], n)
	x.tails.add(gram & shortMask)
	if n.size == longGram {
		x.longs.add(gram)
	} else {
		x.shorts.add(gram)
	}
}

// candidates calls found for every needle whose gram stands in text, with where the needle would begin, which may be
// before text does.
func (x *index) candidates(text []byte, found func(n *needle, from int)) {
	var gram uint64
	for i, c := range text {
		gram = gram<<8 | uint64(c)
		if short := gram & shortMask; x.tails.mayHave(short) {
			if x.shorts.mayHave(short) {
				x.report(short, i+1, found)
			}
			if x.longs.mayHave(gram) {
				x.report(gram, i+1, found)
			}
		}
	}
}

// report calls found for the needles of a gram that ends at end.
func (x *index) report(gram uint64, end int, found func(n *needle, from int)) {
	needles := x.needles[gram]
	for i := range needles {
		n := &needles[i]
		found(n, end-n.size-n.offset)
	}
}

// stands tells whether n stands at from as its kind wants it to.
func (n *needle) stands(text []byte, from int) bool {
	if from < 0 || !bytes.HasPrefix(text[from:], []byte(n.text)) {
		return false
	}
	to := from + len(n.text)
	begins := from == 0 || text[from-1] == '_'
	ends := to == len(text) || text[to] == '_'
	switch n.kind {
	case byPhrase, aWord:
		return begins && ends
	case byPrefix, aBeginning:
		return begins
	default:
		return true
	}
}

// wordStands tells the same of the word of n that its gram is part of.
func (n *needle) wordStands(text []byte, from int) bool {
	start := strings.LastIndexByte(n.text[:n.offset], '_') + 1
	word, _, _ := strings.Cut(n.text[start:], "_")
	return from+start >= 0 && bytes.HasPrefix(text[from+start:], []byte(word))
}

// common are the symbols of messages, gaps and the most frequent of Portuguese and English ones first.
const common = "_EAORISTNDCMULPVGBFHXQZYJKW0123456789"

// crowd is how much rarer a gram must be to be shared with one more needle.
const crowd = 5

// rarest is where the gram of text stands whose end is least to be expected in messages, and which fewest needles have
// already; ok tells that there is one.
func (x *index) rarest(text string, size int, gaps bool) (offset int, ok bool) {
	most := math.MinInt
	for i := range len(text) - size + 1 {
		gram := text[i : i+size]
		if !gaps && strings.Contains(gram, "_") {
			continue
		}
		rarity := -crowd * len(x.needles[gramOf(gram)])
		for _, c := range []byte(gram[size-shortGram:]) {
			rarity += strings.IndexByte(common, c)
		}
		if rarity > most {
			most, offset, ok = rarity, i, true
		}
	}
	return offset, ok
}

const shortMask = 1<<(8*shortGram) - 1

func gramOf(text string) (gram uint64) {
	for _, c := range []byte(text) {
		gram = gram<<8 | uint64(c)
	}
	return gram
}

// bloom is a set of grams that may say it has one that it has not.
type bloom [1 << (16 - 6)]uint64

// hash of a gram, in 16 bits.
func hash(gram uint64) uint64 { return gram * 0x9e3779b97f4a7c15 >> 48 }

func (b *bloom) add(gram uint64) {
	h := hash(gram)
	b[h>>6] |= 1 << (h & 63)
}

func (b *bloom) mayHave(gram uint64) bool {
	h := hash(gram)
	return b[h>>6]&(1<<(h&63)) != 0
}
