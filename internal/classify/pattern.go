package classify

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// pattern is a bounded regular expression, tried where nothing stronger was found.
type pattern struct {
	matcher int
	*regexp.Regexp
}

const (
	// maxRepeat of a pattern's parts, and maxProgram of its steps, bound what it costs.
	maxRepeat  = 200
	maxProgram = 4000
)

func (c *compiler) addPattern(s string, r *Rule, rank Rank) *RuleError {
	wrong := func(found, expected string) *RuleError {
		return &RuleError{Found: strconv.Quote(s) + " " + found, Expected: expected}
	}
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return wrong("is none: "+err.Error(), "a regular expression as RE2 reads them")
	}
	if found, expected := unsound(tree); found != "" {
		return wrong(found, expected)
	}
	if steps(tree) > maxProgram {
		return wrong("is too long", "one of at most "+strconv.Itoa(maxProgram)+" steps")
	}
	c.patterns = append(c.patterns, pattern{c.matcher(r, r.Name, rank), regexp.MustCompile(s)})
	return nil
}

// steps returns about how many instructions re is compiled to; what is above the most allowed need not be exact.
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
	case syntax.OpEmptyMatch:
		return "matches every message", "a pattern that matches some text"
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

// isForeign reports whether no plain text holds r.
func isForeign(r rune, flags syntax.Flags) bool {
	if flags&syntax.FoldCase != 0 {
		return r > 0x7e
	}
	return 'A' <= r && r <= 'Z' || r < ' ' || r > 0x7e
}
