package classify

// automaton finds every needle in a text in one pass (Aho and Corasick, 1975). It works on the symbols of folded text:
// letters, digits, and one symbol for every kind of gap. It is a trie of needles until build completes it.
type automaton struct {
	// next holds the next state by state and symbol; 0, the start, if there is none.
	next [][symbolCount]int32
	// ends are the uses of the needles that end in a state.
	ends [][]use
}

const (
	gapSymbol   = 36
	symbolCount = 37
)

// symbols maps bytes to symbols; a byte that is no letter or digit is a gap.
var symbols = func() (table [256]uint8) {
	for c := range table {
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z' && c < 0x80:
			table[c] = uint8(c | 0x20 - 'a')
		case '0' <= c && c <= '9':
			table[c] = uint8(c - '0' + 26)
		default:
			table[c] = gapSymbol
		}
	}
	return table
}()

// use says what a needle stands for. A needle may have several uses.
type use struct {
	role role
	// matcher is the matcher's number; none if the role belongs to no rule.
	matcher int
	// length of the needle in words, or in symbols if it is a code.
	length int
}

func newAutomaton() automaton { return automaton{make([][symbolCount]int32, 1), make([][]use, 1)} }

// add puts in a needle with its use.
func (a *automaton) add(needle string, u use) {
	state := int32(0)
	for i := range len(needle) {
		s := symbols[needle[i]]
		if a.next[state][s] == 0 {
			a.next[state][s] = int32(len(a.next))
			a.next, a.ends = append(a.next, [symbolCount]int32{}), append(a.ends, nil)
		}
		state = a.next[state][s]
	}
	a.ends[state] = append(a.ends[state], u)
}

// build completes the transitions: where a state has no child, it goes on as its longest proper suffix does.
func (a *automaton) build() {
	suffix := make([]int32, len(a.next))
	queue := make([]int32, 0, len(a.next))
	for _, child := range a.next[0] {
		if child != 0 {
			queue = append(queue, child)
		}
	}
	for i := 0; i < len(queue); i++ {
		state := queue[i]
		a.ends[state] = append(a.ends[state], a.ends[suffix[state]]...)
		for symbol, child := range a.next[state] {
			beyond := a.next[suffix[state]][symbol]
			if child == 0 {
				a.next[state][symbol] = beyond
				continue
			}
			suffix[child] = beyond
			queue = append(queue, child)
		}
	}
}

// each calls found for every needle in r: it begins at word from and ends before word to. Addresses are skipped.
func (a *automaton) each(r *reading, found func(u use, from, to int)) {
	state := int32(0)
	step := func(symbol uint8, end int) {
		state = a.next[state][symbol]
		for _, u := range a.ends[state] {
			found(u, end-u.length, end)
		}
	}
	for i, t := range r.words {
		step(gapSymbol, i)
		if t.isAddress {
			state = 0
			continue
		}
		for _, c := range r.plain[t.from:t.to] {
			step(symbols[c], i+1)
		}
	}
	step(gapSymbol, len(r.words))
}
