package decision

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// requirement is what a text that a regular expression matches must hold.
type requirement struct {
	// exact are all the texts that it matches, where they are few; nil otherwise.
	exact []string
	// lists of literals in the folded form, of each of which one must stand in the text.
	lists [][]string
}

// mostExact texts are told apart.
const mostExact = 48

// all are the lists; nil where nothing is required.
func (r requirement) all() [][]string {
	if list := literals(r.exact); list != nil {
		return append(r.lists, list)
	}
	return r.lists
}

// literals are texts in the folded form, with the gaps at their ends: what is behind a space begins a word. It is nil
// where one has no 4 letters or digits to be found by.
func literals(texts []string) (list []string) {
	for _, text := range texts {
		literal := foldedForm.of(text)
		if len(strings.Trim(literal, "_")) < shortKey {
			return nil
		}
		list = append(list, literal)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func required(re *syntax.Regexp) requirement {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return requirement{exact: []string{""}}
	case syntax.OpLiteral:
		return requirement{exact: []string{string(re.Rune)}}
	case syntax.OpCharClass:
		return requirement{exact: runesOf(re.Rune)}
	case syntax.OpCapture:
		return required(re.Sub[0])
	case syntax.OpQuest:
		if exact := required(re.Sub[0]).exact; exact != nil {
			return requirement{exact: append(exact, "")}
		}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requirement{lists: required(re.Sub[0]).all()}
		}
	case syntax.OpConcat:
		return requiredInTurn(re.Sub)
	case syntax.OpAlternate:
		return requiredOfAny(re.Sub)
	}
	return requirement{}
}

// runesOf lists the characters of a small class, whose ranges are pairs; nil of a large one.
func runesOf(ranges []rune) (texts []string) {
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if len(texts) == 4 {
				return nil
			}
			texts = append(texts, string(r))
		}
	}
	return texts
}

// requiredInTurn joins the exact texts of neighbours as far as they are few: (nao|sem) acesso is two texts.
func requiredInTurn(parts []*syntax.Regexp) (all requirement) {
	all.exact = []string{""}
	joined := []string{""}
	for _, part := range parts {
		r := required(part)
		if r.exact != nil && len(joined)*len(r.exact) <= mostExact {
			joined = join(joined, r.exact)
			continue
		}
		all.lists = append(requirement{joined, all.lists}.all(), r.lists...)
		all.exact, joined = nil, r.exact
		if joined == nil {
			joined = []string{""}
		}
	}
	if all.exact != nil {
		return requirement{exact: joined}
	}
	return requirement{lists: requirement{joined, all.lists}.all()}
}

func join(starts, ends []string) []string {
	texts := make([]string, 0, len(starts)*len(ends))
	for _, start := range starts {
		for _, end := range ends {
			texts = append(texts, start+end)
		}
	}
	return texts
}

// requiredOfAny is one list, of what each alternative has that is least common; nothing where one requires nothing.
func requiredOfAny(alternatives []*syntax.Regexp) requirement {
	var exact, list []string
	areExact := true
	for _, re := range alternatives {
		r := required(re)
		areExact = areExact && r.exact != nil
		exact = append(exact, r.exact...)
		if all := r.all(); all != nil {
			list = append(list, slices.MaxFunc(all, func(a, b []string) int { return shortest(a) - shortest(b) })...)
		} else {
			list = append(list, "")
		}
	}
	switch {
	case areExact && len(exact) <= mostExact:
		return requirement{exact: exact}
	case slices.Contains(list, ""):
		return requirement{}
	default:
		return requirement{lists: [][]string{list}}
	}
}

// shortest is the length of the shortest literal.
func shortest(literals []string) int {
	return len(slices.MinFunc(literals, func(a, b string) int { return len(a) - len(b) }))
}
