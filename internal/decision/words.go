package decision

import (
	"bytes"
	"math"
	"strings"
)

// wordGroups match where a word of every group stands near one of the anchor's. They are looked at only where an anchor
// stands and the message holds a word of every group that the index can find.
type wordGroups struct {
	place    int
	groups   [][]word // but for the anchor
	literals [][]int  // of those groups whose words are all long enough, by their numbers
}

// word is one or more words in the folded form.
type word struct {
	text   string
	anyEnd bool
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
			w := word{foldedName(bare), anyEnd}
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
	if longest < shortGram {
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
		if shortestWord(group) >= shortGram {
			w.literals = append(w.literals, c.wordLiterals(group))
		}
	}
	for _, anchor := range c.wordLiterals(groups[0]) {
		c.anchored[anchor] = append(c.anchored[anchor], len(c.words))
	}
	c.words = append(c.words, w)
	return nil
}

// wordLiterals are the numbers of a group's words, which many entries may share.
func (c *Classifier) wordLiterals(group []word) []int {
	numbers := make([]int, len(group))
	for i, w := range group {
		kind := aWord
		if w.anyEnd {
			kind = aBeginning
		}
		numbers[i] = c.literal(w.text, kind)
	}
	return numbers
}

func shortestWord(group []word) int {
	least := math.MaxInt
	for _, w := range group {
		least = min(least, len(w.text))
	}
	return least
}

// near tells whether a word of every group stands near text[from:to], an anchor, and which part of text holds them all.
func (w *wordGroups) near(text []byte, from, to int) (start, end int, ok bool) {
	low, high := surroundings(text, from)
	start, end = from, to
	for _, group := range w.groups {
		at, size := firstOf(group, text[low:high])
		if at < 0 {
			return 0, 0, false
		}
		start, end = min(start, low+at), max(end, low+at+size)
	}
	return start, end, true
}

// surroundings are the words near the one that begins at from. The first is whole.
func surroundings(text []byte, from int) (low, high int) {
	low, high = from, from
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
			return low, most
		}
		high += 1 + i
	}
	return low, high
}

// firstOf is where the first word of a group stands in text, which begins with a word, and how long it is; below 0
// where none does.
func firstOf(group []word, text []byte) (at, size int) {
	for at = 0; at < len(text); {
		for i := range group {
			if group[i].beginsAt(text, at) {
				return at, len(group[i].text)
			}
		}
		gap := bytes.IndexByte(text[at:], '_')
		if gap < 0 {
			break
		}
		at += gap + 1
	}
	return -1, 0
}

func (w *word) beginsAt(text []byte, at int) bool {
	to := at + len(w.text)
	return text[at] == w.text[0] && to <= len(text) && string(text[at:to]) == w.text && (w.anyEnd || to == len(text) || text[to] == '_')
}
