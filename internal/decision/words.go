package decision

import (
	"bytes"
	"math"
	"slices"
	"strings"
)

// wordGroups match where a word of every group stands near one of the anchor's. They are looked at only where an anchor
// stands and the message holds a word of every group.
type wordGroups struct {
	place  int
	groups [][]word // but for the anchor
	// literals are those of the groups whose words have all at least 4 letters: of each group one must stand within
	// patternReach.
	literals [][]int
	// shorts are those of the other groups, as far as the index can find all of their words.
	shorts [][]int
}

// word is one or more words in the folded form.
type word struct {
	text   string
	anyEnd bool
	// literal is its number, below 0 where the index cannot find it.
	literal int
}

const (
	// wordsReach is how many words before and behind an anchor's first are near it, and reachOfWords how many bytes.
	wordsReach   = 8
	reachOfWords = 160
)

// parseWords takes an entry apart: groups joined by +, words of a group by |. The first is the anchor: the group whose
// shortest word is the longest.
func parseWords(entry string) (groups [][]word, wrong *RuleError) {
	anchor, longest := 0, 0
	for i, list := range strings.Split(entry, "+") {
		var group []word
		for item := range strings.SplitSeq(list, "|") {
			bare, anyEnd := strings.CutSuffix(strings.TrimSpace(item), "*")
			w := word{foldedName(bare), anyEnd, -1}
			if w.text == "" || strings.Contains(bare, "*") {
				return nil, refused(entry, "groups of words, such as ja | already + recebid* | received; a word may end in *")
			}
			group = append(group, w)
		}
		groups = append(groups, group)
		if least := shortestWord(group); least > longest {
			anchor, longest = i, least
		}
	}
	if longest < shortKey {
		return nil, refused(entry, "a group whose words all have at least 4 letters or digits")
	}
	groups[0], groups[anchor] = groups[anchor], groups[0]
	return groups, nil
}

func (c *Classifier) addWords(r *Rule, entry string) *RuleError {
	groups, wrong := parseWords(entry)
	if wrong != nil {
		return wrong
	}
	w := wordGroups{place: c.place(matcher{r, r.Name}), groups: groups[1:]}
	for _, group := range w.groups {
		switch literals := c.wordLiterals(group); {
		case shortestWord(group) >= shortKey:
			w.literals = append(w.literals, literals)
		case !slices.Contains(literals, -1):
			w.shorts = append(w.shorts, literals)
		}
	}
	for _, anchor := range c.wordLiterals(groups[0]) {
		c.anchored[anchor] = append(c.anchored[anchor], len(c.words))
	}
	c.words = append(c.words, w)
	return nil
}

// wordLiterals are the numbers of a group's words, which many entries may share; -1 for one that cannot be found.
func (c *Classifier) wordLiterals(group []word) []int {
	numbers := make([]int, len(group))
	for i := range group {
		w, kind := &group[i], aWord
		if w.anyEnd {
			kind = aBeginning
		}
		if w.findable() {
			w.literal = c.literal(w.text, kind)
		}
		numbers[i] = w.literal
	}
	return numbers
}

// findable tells that the index can find w: the last of its words is whole or long enough to be known by its beginning.
func (w *word) findable() bool { return !w.anyEnd || len(w.text) >= shortKey }

func shortestWord(group []word) int {
	least := math.MaxInt
	for _, w := range group {
		least = min(least, len(w.text))
	}
	return least
}

// surroundings are the words near an anchor that stands in a text from one place to another: words, of which the first is
// whole, begin at low.
type surroundings struct {
	from, to int
	low      int
	words    []byte
}

// near tells whether a word of every group stands near an anchor, and which part of the text holds them all. Words that
// counts does not have are not looked for; nil knows of none.
func (w *wordGroups) near(s *surroundings, counts literalCounts) (start, end int, ok bool) {
	start, end = s.from, s.to
	for _, group := range w.groups {
		at, size := firstOf(group, s.words, counts)
		if at < 0 {
			return 0, 0, false
		}
		start, end = min(start, s.low+at), max(end, s.low+at+size)
	}
	return start, end, true
}

func surroundingsOf(text []byte, from, to int) surroundings {
	low, high := from, from
	for range wordsReach {
		if low <= 1 || from-low > reachOfWords {
			break
		}
		least := max(0, from-reachOfWords)
		i := bytes.LastIndexByte(text[least:low-1], '_')
		if i < 0 && least > 0 {
			break // a word too long to be one
		}
		low = least + i + 1
	}
	for range wordsReach + 1 {
		most := min(len(text), from+reachOfWords)
		i := bytes.IndexByte(text[min(high+1, most):most], '_')
		if i < 0 {
			high = most
			break
		}
		high += 1 + i
	}
	return surroundings{from, to, low, text[low:high]}
}

// firstOf is where the first word of a group stands in text, which begins with a word, and how long it is; below 0
// where none does.
func firstOf(group []word, text []byte, counts literalCounts) (at, size int) {
	at = len(text)
	for i := range group {
		w := &group[i]
		if counts != nil && w.literal >= 0 && counts.of(w.literal) == 0 {
			continue
		}
		if from := w.first(text, at); from >= 0 {
			at, size = from, len(w.text)
		}
	}
	if size == 0 {
		return -1, 0
	}
	return at, size
}

// first is where w stands first in text, before a place; below 0 where it does not.
func (w *word) first(text []byte, before int) int {
	for at := 0; at < before; {
		if w.beginsAt(text, at) {
			return at
		}
		gap := bytes.IndexByte(text[at:before], '_')
		if gap < 0 {
			break
		}
		at += gap + 1
	}
	return -1
}

func (w *word) beginsAt(text []byte, at int) bool {
	to := at + len(w.text)
	return text[at] == w.text[0] && to <= len(text) && string(text[at:to]) == w.text && (w.anyEnd || to == len(text) || text[to] == '_')
}
