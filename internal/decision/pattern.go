package decision

import (
	"cmp"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// pattern is a bounded regular expression. It is tried only on texts whose folded form holds its literals: of each list
// at least one.
type pattern struct {
	expression func() *regexp.Regexp // compiled when it is tried first: most never are
	place      int
	literals   [][]int // by their numbers, the shortest list first
}

const (
	// maxRepeat of a pattern's parts, and maxProgram of its steps, bound what it costs.
	maxRepeat  = 200
	maxProgram = 4000
)

// compilePattern refuses what is unbounded, or can only be tried on every text. The literals are those it requires.
func compilePattern(s string) (p *pattern, literals [][]string, err *RuleError) {
	wrong := func(found, expected string) (*pattern, [][]string, *RuleError) {
		return nil, nil, refused(s, expected).because(found)
	}
	tree, e := syntax.Parse(s, syntax.Perl)
	if e != nil {
		return wrong("is none: "+e.Error(), "a regular expression as RE2 reads them")
	}
	if found, expected := unsound(tree); found != "" {
		return wrong(found, expected)
	}
	if steps(tree) > maxProgram {
		return wrong("is too long", "one of at most "+strconv.Itoa(maxProgram)+" steps")
	}
	if literals = required(tree).all(); literals == nil {
		return wrong("would have to be tried on every message", "a fixed word of at least 4 letters or digits in every alternative")
	}
	slices.SortStableFunc(literals, func(a, b []string) int { return cmp.Compare(len(a), len(b)) })
	return &pattern{expression: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s) })}, literals, nil
}

// steps is about how many instructions re is compiled to; what is above the most allowed need not be exact.
func steps(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/2
	for _, sub := range re.Sub {
		n += steps(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Max, 1)
	}
	return min(n, maxProgram+1)
}

// unsound finds what in a pattern may go on for ever, and letters that no plain text holds.
func unsound(re *syntax.Regexp) (found, expected string) {
	const bound = "a bound such as {0,40}"
	switch re.Op {
	case syntax.OpStar, syntax.OpPlus:
		return fmt.Sprintf("may go on for ever at %s", re), bound
	case syntax.OpRepeat:
		if re.Max < 0 || re.Max > maxRepeat {
			return fmt.Sprintf("repeats without end or more than %d times at %s", maxRepeat, re), bound
		}
	case syntax.OpLiteral:
		if text := string(re.Rune); strings.ContainsFunc(text, func(r rune) bool { return isForeign(r, re.Flags) }) {
			return fmt.Sprintf("holds %q", text), "lower case without accents, as messages are compared with it"
		}
	}
	for _, sub := range re.Sub {
		if found, expected := unsound(sub); found != "" {
			return found, expected
		}
	}
	return "", ""
}

// isForeign tells whether no plain text holds r.
func isForeign(r rune, flags syntax.Flags) bool {
	if flags&syntax.FoldCase != 0 {
		return r > 0x7e
	}
	return 'A' <= r && r <= 'Z' || r < ' ' || r > 0x7e
}
