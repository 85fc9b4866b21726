package decision

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// pattern is a bounded regular expression and the literals of which a text must hold one for it to match: it is tried
// on those texts only.
type pattern struct {
	expression *regexp.Regexp
	literals   []string // in the folded form
}

const (
	// maxRepeat of a pattern's parts, and maxProgram of its instructions, bound what it costs.
	maxRepeat  = 200
	maxProgram = 2000
)

// compilePattern refuses what is unbounded, or can only be tried on every text.
func compilePattern(s string) (*pattern, error) {
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%w, expected a regular expression as RE2 reads them", err)
	}
	if err := bounded(tree); err != nil {
		return nil, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil, fmt.Errorf("has more than %d steps, expected a shorter one", maxProgram)
	}
	literals := required(tree)
	if literals == nil {
		return nil, fmt.Errorf("has no fixed part of %d letters or digits that every match holds, expected one, so that it need not be tried on every message", gramBytes)
	}
	expression, err := regexp.Compile(s)
	if err != nil {
		return nil, fmt.Errorf("%w, expected a regular expression as RE2 reads them", err)
	}
	return &pattern{expression, literals}, nil
}

// bounded refuses parts that may go on for ever, and letters that no plain text holds.
func bounded(re *syntax.Regexp) error {
	switch re.Op {
	case syntax.OpStar, syntax.OpPlus:
		return fmt.Errorf("%s may go on for ever, expected a bound such as {0,40}", re)
	case syntax.OpRepeat:
		if re.Max < 0 || re.Max > maxRepeat {
			return fmt.Errorf("%s repeats without end or more than %d times, expected a bound such as {0,40}", re, maxRepeat)
		}
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 && strings.ContainsFunc(string(re.Rune), func(r rune) bool { return 'A' <= r && r <= 'Z' || r > 0x7e }) {
			return fmt.Errorf("%q is not in lower case without accents, which is how messages are compared with patterns", string(re.Rune))
		}
	}
	for _, sub := range re.Sub {
		if err := bounded(sub); err != nil {
			return err
		}
	}
	return nil
}

// required are folded literals of which everything that re matches holds at least one; nil where there are none.
func required(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if name := foldedName(string(re.Rune)); len(name) >= gramBytes {
			return []string{name}
		}
	case syntax.OpCapture:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if r := required(sub); r != nil && (best == nil || shortest(r) > shortest(best)) {
				best = r
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			r := required(sub)
			if r == nil {
				return nil
			}
			all = append(all, r...)
		}
		return all
	}
	return nil
}

func shortest(literals []string) int {
	n := len(literals[0])
	for _, l := range literals {
		n = min(n, len(l))
	}
	return n
}
