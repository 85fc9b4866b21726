package decision

import "bytes"

// index finds many short texts in a long one in a single pass, whose cost does not grow with their number: each is
// known by gramBytes of its own, and where these stand in the long text, and only there, it is compared.
type index struct {
	// present has a bit for the hash of every gram.
	present [1 << (16 - 6)]uint64
	grams   map[uint32][]needle
}

// gramBytes is also the shortest text that can be found.
const gramBytes = 4

// needle is one text to find. place is its number for who asks, offset where its gram stands in it.
type needle struct {
	text          string
	offset, place int
}

// add makes text, at least gramBytes long, findable as place.
func (x *index) add(text string, place int) {
	offset := rarest(text)
	gram := gramOf(text, offset)
	if x.grams == nil {
		x.grams = make(map[uint32][]needle)
	}
	x.grams[gram] = append(x.grams[gram], needle{text, offset, place})
	h := hash(gram)
	x.present[h>>6] |= 1 << (h & 63)
}

// find calls found for everything that stands in text, with its place and where it begins.
func (x *index) find(text []byte, found func(place, from, to int)) {
	var gram uint32
	for i, c := range text {
		gram = gram<<8 | uint32(c)
		if h := hash(gram); x.present[h>>6]&(1<<(h&63)) == 0 || i < gramBytes-1 {
			continue
		}
		for _, n := range x.grams[gram] {
			from := i - (gramBytes - 1) - n.offset
			if from >= 0 && bytes.HasPrefix(text[from:], []byte(n.text)) {
				found(n.place, from, from+len(n.text))
			}
		}
	}
}

// hash of a gram, in 16 bits.
func hash(gram uint32) uint32 { return gram * 0x9e3779b1 >> 16 }

func gramOf(text string, offset int) uint32 {
	var gram uint32
	for _, c := range []byte(text[offset : offset+gramBytes]) {
		gram = gram<<8 | uint32(c)
	}
	return gram
}

// common are the symbols of normalised texts, the most frequent of Portuguese and English messages first.
const common = "_EAORISTNDCMULPVGBFHXQZYJKW0123456789"

// rarest is where the gram of text stands that is least to be expected in other texts.
func rarest(text string) (offset int) {
	most := -1
	for i := 0; i+gramBytes <= len(text); i++ {
		rarity := 0
		for _, c := range []byte(text[i : i+gramBytes]) {
			rarity += bytes.IndexByte([]byte(common), c)
		}
		if rarity > most {
			most, offset = rarity, i
		}
	}
	return offset
}
