package classify

// automaton finds every needle in a text in one pass (Aho and Corasick, 1975). It works on the symbols of folded text:
// letters, digits, and one symbol for every kind of gap.
type automaton struct {
	// next state by state and symbol.
	next [][symbolCount]int32
	// ends are the uses of the needles that end in a state.
	ends [][]use
}

const (
	gapSymbol   = 36
	symbolCount = 37
)

// symbols maps the bytes of folded text; whatever is neither a lower-case letter nor a digit is a gap.
var symbols = func() (table [256]uint8) {
	for c := range table {
		switch {
		case 'a' <= c && c <= 'z':
			table[c] = uint8(c - 'a')
		case '0' <= c && c <= '9':
			table[c] = uint8(c - '0' + 26)
		default:
			table[c] = gapSymbol
		}
	}
	return table
}()

// use is what a needle stands for. A needle may have several.
type use struct {
	role role
	// matcher is its number; none where the role belongs to no rule.
	matcher int
	// length of the needle. An open one may go on to the end of the word.
	length int
	open   bool
}

// trie collects needles before they become an automaton.
type trie struct {
	children [][symbolCount]int32
	ends     [][]use
}

// add puts in a needle with its use.
func (t *trie) add(needle string, u use) {
	state := int32(0)
	for i := range len(needle) {
		s := symbols[needle[i]]
		if t.children[state][s] == 0 {
			t.children[state][s] = int32(len(t.children))
			t.children, t.ends = append(t.children, [symbolCount]int32{}), append(t.ends, nil)
		}
		state = t.children[state][s]
	}
	u.length = len(needle)
	t.ends[state] = append(t.ends[state], u)
}

// build completes the transitions: where a state has no child, it goes on as its longest proper suffix does.
func (t *trie) build() automaton {
	suffix := make([]int32, len(t.children))
	queue := make([]int32, 0, len(t.children))
	for _, child := range t.children[0] {
		if child != 0 {
			queue = append(queue, child)
		}
	}
	for i := 0; i < len(queue); i++ {
		state := queue[i]
		t.ends[state] = append(t.ends[state], t.ends[suffix[state]]...)
		for symbol, child := range t.children[state] {
			beyond := t.children[suffix[state]][symbol]
			if child == 0 {
				t.children[state][symbol] = beyond
				continue
			}
			suffix[child] = beyond
			queue = append(queue, child)
		}
	}
	return automaton{t.children, t.ends}
}

// find calls found for each state in which needles end, with the place behind their last symbol.
func (a *automaton) find(text []byte, found func(uses []use, end int)) {
	state := int32(0)
	for i, c := range text {
		state = a.next[state][symbols[c]]
		if uses := a.ends[state]; len(uses) > 0 {
			found(uses, i+1)
		}
	}
}
