package decision

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"strings"
)

// index finds many short texts, the needles, in a long one in a pass whose cost does not grow with their number: each is
// known by a key, and only where that stands in the long text the needle is compared. Nearly every needle has a word that
// must begin where a word of the long text does; so the beginnings of words are looked at, and what can stand in the
// middle of one is looked for at every stride-th place.
type index struct {
	// words are known by a whole word of less than 8 letters, or by the first 8 of a longer one; heads by the first 4 of
	// a word that may go on; parts by 4 bytes anywhere.
	words, heads, parts table
	// begins has the first 4 bytes of every key of words and heads.
	begins bloom
	// anywhere are the needles of parts: under which keys they are known depends on stride.
	anywhere []needle
	stride   int
}

// Sizes in bytes.
const (
	longKey  = 8
	shortKey = 4 // also the shortest text that can stand in the middle of a word
	// roomyPart is as long as a part must be for the largest stride: at least one of so many keys in a row is looked at.
	largestStride = 4
	roomyPart     = shortKey + largestStride - 1
	// padding is how many gaps stand behind a text that is searched: the blocks and words that are looked at begin in the
	// text and may end behind it.
	padding = 64 + 2*longKey
)

// needle is one text to find, as kind wants it to stand; number is for who asks. Its key stands at offset in it.
type needle struct {
	text   string
	kind   needleKind
	number int
	offset int
	// start has the first 8 bytes of text, mask tells which of them there are.
	start, mask uint64
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

// beginsWord tells that a needle of the kind begins where a word does, endsWord that it ends there too.
func (k needleKind) beginsWord() bool { return k != byCode && k != ofPattern }
func (k needleKind) endsWord() bool   { return k == byPhrase || k == aWord }

// add makes n findable; ok is false where its key is no part of one word.
func (x *index) add(n needle) (ok bool) {
	start := n.text[:min(len(n.text), longKey)]
	n.start, n.mask = keyOf(start), 1<<(8*len(start))-1
	t, key, offset := x.best(&n)
	part, _ := n.part()
	if t == nil || t.count(key) >= crowded && len(part) >= roomyPart && !n.kind.beginsWord() {
		x.anywhere = append(x.anywhere, n)
		return !strings.Contains(part, "_")
	}
	n.offset = offset
	t.add(key, n)
	x.begins.add(key & headMask)
	return true
}

// best is the key of n that is least to be expected at the beginning of a word, and which fewest needles have already;
// t is nil where n has none.
func (x *index) best(n *needle) (t *table, key uint64, offset int) {
	most := math.MinInt
	for from, to := 0, 0; from < len(n.text); from = to + 1 {
		to = from + strings.IndexByte(n.text[from:]+"_", '_')
		letters, isWord := n.begin(from, to)
		if letters == "" {
			continue
		}
		in, k := &x.heads, keyOf(letters)
		if isWord {
			in = &x.words
		}
		if r := rarity(letters) - crowd*in.count(k); r > most {
			most, t, key, offset = r, in, k, from
		}
	}
	return t, key, offset
}

// begin is what n can be known by of its word n.text[from:to], empty where it cannot; isWord tells that no text goes on
// otherwise, or not before longKey letters.
func (n *needle) begin(from, to int) (letters string, isWord bool) {
	begins := from > 0 || n.kind.beginsWord()
	// In the folded form an accented letter may stand where a word of a code ends.
	ends := to < len(n.text) && n.kind != byCode || to == len(n.text) && n.kind.endsWord()
	switch size := to - from; {
	case !begins:
		return "", false
	case size >= longKey:
		return n.text[from : from+longKey], true
	case ends:
		return n.text[from:to], true
	case size >= shortKey:
		return n.text[from : from+shortKey], false
	default:
		return "", false
	}
}

// part is what n is known by where it stands in the middle of a word: of a code its longest word if that is long enough,
// because the folded form may have none of the code's gaps.
func (n *needle) part() (part string, offset int) {
	if n.kind != byCode {
		return n.text, 0
	}
	for from, to := 0, 0; from < len(n.text); from = to + 1 {
		to = from + strings.IndexByte(n.text[from:]+"_", '_')
		if to-from > len(part) {
			part, offset = n.text[from:to], from
		}
	}
	if len(part) < shortKey {
		return n.text, 0
	}
	return part, offset
}

// seal ends the adding.
func (x *index) seal() {
	x.stride = largestStride
	for i := range x.anywhere {
		part, _ := x.anywhere[i].part()
		x.stride = min(x.stride, len(part)-shortKey+1)
	}
	for _, n := range x.anywhere {
		x.scatter(n)
	}
	x.anywhere = nil
	for _, t := range []*table{&x.words, &x.heads, &x.parts} {
		t.seal()
	}
}

// scatter makes n known by stride keys in a row, the rarest ones, of which exactly one is looked at.
func (x *index) scatter(n needle) {
	part, offset := n.part()
	most, first := math.MinInt, 0
	for from := range len(part) - shortKey - x.stride + 2 {
		r := 0
		for i := from; i < from+x.stride; i++ {
			letters := part[i : i+shortKey]
			r += rarity(letters) - crowd*x.parts.count(keyOf(letters))
		}
		if r > most {
			most, first = r, from
		}
	}
	for i := first; i < first+x.stride; i++ {
		n.offset = offset + i
		x.parts.add(keyOf(part[i:i+shortKey]), n)
	}
}

// candidates calls found for every needle whose key stands in text, with where the needle would begin, which may be
// before text does. The gaps of padding stand behind text in its array. At seams the words of codes may begin too; byWord
// tells that of a code only the word with its key need stand there.
func (x *index) candidates(text []byte, seams []int32, byWord bool, found func(n *needle, from int)) {
	padded := text[:len(text)+padding]
	x.reportWord(padded, 0, byWord, found)
	for i := 0; i < len(text); i += 64 {
		block := padded[i : i+padding]
		for gaps := gapsAmong(block); gaps != 0; gaps &= gaps - 1 {
			at := bits.TrailingZeros64(gaps) + 1
			if x.mayBegin(binary.LittleEndian.Uint64(block[at : at+longKey])) {
				x.reportWord(padded, i+at, byWord, found)
			}
		}
	}
	for _, at := range seams {
		if x.mayBegin(binary.LittleEndian.Uint64(padded[at:])) {
			x.reportWord(padded, int(at), byWord, func(n *needle, from int) {
				if n.kind == byCode {
					found(n, from)
				}
			})
		}
	}
	if x.parts.keys == 0 {
		return
	}
	for at := 0; at < len(text); at += x.stride {
		if key := uint64(binary.LittleEndian.Uint32(padded[at : at+shortKey])); x.parts.seen.mayHave(key) {
			report(x.parts.of(key), padded, at, byWord, found)
		}
	}
}

// mayBegin tells that some needle may be known by the word that eight bytes begin with.
func (x *index) mayBegin(eight uint64) bool { return x.begins.mayHave(firstWord(eight) & headMask) }

// reportWord calls found for the needles that are known by the word that begins at a place.
func (x *index) reportWord(padded []byte, at int, byWord bool, found func(n *needle, from int)) {
	word := firstWord(binary.LittleEndian.Uint64(padded[at:]))
	report(x.words.of(word), padded, at, byWord, found)
	report(x.heads.of(word&headMask), padded, at, byWord, found)
}

// report calls found for the needles that are known by what stands at a place, but for those that at once are seen not to
// be there.
func report(needles []needle, padded []byte, at int, byWord bool, found func(n *needle, from int)) {
	for i := range needles {
		n := &needles[i]
		from := at - n.offset
		if n.kind == byCode && byWord || from >= 0 && (binary.LittleEndian.Uint64(padded[from:])^n.start)&n.mask == 0 {
			found(n, from)
		}
	}
}

// firstWord cuts eight bytes off at their first gap.
func firstWord(eight uint64) uint64 {
	gaps := gapsIn(eight)
	return eight & (gaps&-gaps>>7 - 1)
}

// headMask leaves shortKey bytes of a key.
const headMask = 1<<(8*shortKey) - 1

// keyOf is a key as it is read from a text.
func keyOf(letters string) (key uint64) {
	for i := range len(letters) {
		key |= uint64(letters[i]) << (8 * i)
	}
	return key
}

// common are the symbols of messages, gaps and the most frequent of Portuguese and English ones first.
const common = "_EAORISTNDCMULPVGBFHXQZYJKW0123456789"

// rarity of a key: the longer it is and the rarer its letters are, the less it is to be expected. Very short words are
// everywhere.
func rarity(letters string) (r int) {
	if len(letters) < shortKey {
		r = math.MinInt / 2
	}
	for i := range len(letters) {
		r += strings.IndexByte(common, letters[i])
	}
	return r
}

const (
	// crowd is how much rarer a key must be to be shared with one more needle.
	crowd = 5
	// crowded is a key of so many needles that a part anywhere is better.
	crowded = 64
)

// stands tells whether n stands at from as its kind wants it to.
func (n *needle) stands(text []byte, from int) bool {
	to := from + len(n.text)
	if from < 0 || to > len(text) || string(text[from:to]) != n.text {
		return false
	}
	begins := from == 0 || text[from-1] == '_'
	ends := to == len(text) || text[to] == '_'
	return (begins || !n.kind.beginsWord()) && (ends || !n.kind.endsWord())
}

// wordStands tells the same of the word of n that its key is part of.
func (n *needle) wordStands(text []byte, from int) bool {
	start := strings.LastIndexByte(n.text[:n.offset], '_') + 1
	word, _, _ := strings.Cut(n.text[start:], "_")
	return from+start >= 0 && bytes.HasPrefix(text[from+start:], []byte(word))
}
