package classify

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// shortest is the least number of letters and digits in a needle.
const shortest = 2

// piece is one item of a rule's lists, and the Match, without Text, of a message that has it.
type piece struct {
	Match
	item string
	role role
}

// each returns the rules that r stands for. A rule without a name stands for one rule for each code: the code is its
// name and, unless r has a reason, its reason.
func (r *Rule) each() (all []Rule) {
	if r.Name != "" {
		return []Rule{*r}
	}
	for _, code := range r.Codes {
		one := *r
		one.Name, one.Reason, one.Codes = code, cmp.Or(r.Reason, Reason(code)), []string{code}
		all = append(all, one)
	}
	return all
}

// New compiles rules, in their order within each rank. Each item of their lists must have passed Check, or the
// catalogue's schema.
func New(rules []Rule, vocabulary Vocabulary) *Classifier {
	c := &Classifier{numbers: make(map[numberKey]int)}
	c.needles.uses, c.codes.uses = make(map[string][]use), make(map[string][]use)
	var pieces []piece
	for i := range rules {
		for _, r := range rules[i].each() {
			r.Rank = cmp.Or(r.Rank, Signature)
			c.rules = append(c.rules, r)
			pieces = append(pieces, piecesOf(&r)...)
		}
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return int(a.Rank - b.Rank) })
	for _, p := range pieces {
		c.add(&p)
	}
	for _, list := range append(vocabulary.Lists(), List{"", lists["contrasts"], contrastRole},
		List{"", laterTries(), tryRole}) {
		for _, item := range list.Items {
			c.addWords(item, use{list.role, none})
		}
	}
	for list, role := range sayings {
		for _, phrase := range lists[list] {
			c.needles.add(phrase, use{role, none})
		}
	}
	slices.SortStableFunc(c.rules, func(a, b Rule) int { return int(a.Rank - b.Rank) })
	return c
}

// piecesOf lists the pieces of a rule. TISS in its own place, and a status beside the text, have rank TISS or a
// stronger one.
func piecesOf(r *Rule) (all []piece) {
	says := Match{Class: r.Class, Rank: r.Rank, Name: r.Name, Reason: r.Reason, Team: r.Team, Hint: r.Hint.String()}
	for _, list := range r.Lists() {
		for _, item := range list.Items {
			if item == "" { // the schema refuses it
				continue
			}
			p := piece{says, item, list.role}
			switch p.role {
			case codeRole:
				p.Name = item
			case statusRole:
				all = append(all, p)
				p.role, p.Rank = besideRole, min(r.Rank, TISS)
			case nameRole, tissRole:
				p.Rank = min(r.Rank, TISS)
			}
			all = append(all, p)
		}
	}
	return all
}

// add compiles a piece of a rule.
func (c *Classifier) add(p *piece) {
	number := len(c.matchers)
	c.matchers = append(c.matchers, p.Match)
	switch p.role {
	case codeRole:
		c.addCode(p.item, p.Rank, number)
	case besideRole, statusRole, tissRole:
		c.addNumber(p.item, p.role, number)
	case patternRole:
		c.addPattern(p.item, number)
	default:
		c.addWords(p.item, use{p.role, number})
	}
}

func (c *Classifier) addCode(code string, rank Rank, number int) {
	if isNumber(code) {
		c.addNumber(code, codeRole, number)
		return
	}
	c.codes.add(code, use{matcher: number})
	for _, kind := range []string{"", "exception", "error", "fault"} {
		if rank == SpecifiedPermanent {
			c.addWords(strings.ReplaceAll(code, "_", "")+kind, use{nameRole, number})
		}
	}
}

// addNumber lets matcher match a number, or a hundred of them if s ends in xx, unless an earlier matcher does.
func (c *Classifier) addNumber(s string, as role, matcher int) {
	n := numberKey{as, s}
	if _, taken := c.numbers[n]; !taken {
		c.numbers[n] = matcher
	}
}

// addWords adds words as a needle.
func (c *Classifier) addWords(s string, u use) {
	if needle, ok := needleOf(s); ok {
		c.needles.add(needle, u)
	}
}

// needleOf returns words as they stand in a reading; the last may end in * for any ending. It returns false if s holds
// too few letters.
func needleOf(s string) (needle string, ok bool) {
	bare, isOpen := strings.CutSuffix(s, "*")
	var r reading
	r.read(bare)
	needle = string(r.text)
	if len(strings.Trim(needle, " ")) < shortest || strings.Contains(bare, "*") {
		return "", false
	}
	if isOpen {
		needle = needle[:len(needle)-1]
	}
	return needle, true
}

// Check returns an error that says what is expected, if item cannot be in the list. It leaves codes and statuses to the
// catalogue's schema.
func (l *List) Check(item string) error {
	switch l.role {
	case codeRole, statusRole, tissRole:
		return nil
	case patternRole:
		return checkPattern(item)
	}
	if _, ok := needleOf(item); !ok {
		return errors.New("words of together at least 2 letters; only the last may end in *")
	}
	return nil
}

// pattern is a bounded regular expression.
type pattern struct {
	matcher int
	*regexp.Regexp
	// needed holds texts of which each match has one; none if such texts are not known.
	needed []string
}

// maxProgram bounds the steps of a pattern.
const maxProgram = 4000

func checkPattern(s string) error {
	tree, err := syntax.Parse("(?i)"+s, syntax.Perl)
	if err != nil {
		return errors.New("a regular expression as RE2 reads them")
	}
	program, err := syntax.Compile(tree.Simplify())
	switch {
	case isUnbounded(tree):
		return errors.New("a bound such as {0,40}")
	case err != nil || len(program.Inst) > maxProgram:
		return fmt.Errorf("one of at most %d steps", maxProgram)
	case regexp.MustCompile("(?i)" + s).MatchString(""):
		return errors.New("a pattern that matches some text")
	case strings.ContainsFunc(s, func(r rune) bool { return r > '~' || r < ' ' }):
		return errors.New("letters without accents, as messages are compared with it")
	}
	return nil
}

func (c *Classifier) addPattern(s string, matcher int) {
	compiled := regexp.MustCompile("(?i)" + s)
	tree, _ := syntax.Parse(compiled.String(), syntax.Perl)
	c.patterns = append(c.patterns, pattern{matcher, compiled, needed(tree)})
}

// needed returns texts, as long as possible, of which each match of a pattern has one.
func needed(re *syntax.Regexp) (texts []string) {
	least := func(texts []string) int {
		if texts == nil {
			return 0
		}
		return len(slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) }))
	}
	if re.Op == syntax.OpLiteral {
		return []string{strings.ToLower(string(re.Rune))}
	}
	for _, sub := range re.Sub {
		switch of := needed(sub); {
		case re.Op == syntax.OpConcat && least(of) > least(texts), re.Op == syntax.OpCapture:
			texts = of
		case re.Op == syntax.OpAlternate && of == nil:
			return nil
		case re.Op == syntax.OpAlternate:
			texts = append(texts, of...)
		}
	}
	return texts
}

// isUnbounded reports whether a part of a pattern may repeat without limit.
func isUnbounded(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0 ||
		slices.ContainsFunc(re.Sub, isUnbounded)
}

//go:embed words.txt
var wordLines string

// lists holds the word lists of words.txt, which explains its own format.
var lists = func() map[string][]string {
	lists := make(map[string][]string)
	for line := range strings.Lines(wordLines) {
		if key, words, ok := strings.Cut(line, ":"); ok && line[0] != '#' {
			for _, word := range strings.Fields(words) {
				lists[key] = append(lists[key], strings.ReplaceAll(word, "_", " "))
			}
		}
	}
	return lists
}()

// set returns a list as a set.
func set(list string) map[string]bool {
	all := make(map[string]bool)
	for _, word := range lists[list] {
		all[word] = true
	}
	return all
}

// patternOf returns a list as a regular expression.
func patternOf(list string) *regexp.Regexp {
	return regexp.MustCompile(`\b(?:` + strings.Join(lists[list], "|") + ")")
}

var (
	knowing, holds, tasks                = patternOf("knowing"), patternOf("holds"), patternOf("tasks")
	requests, momentary                  = patternOf("requests"), patternOf("momentary")
	later, turnedDown                    = patternOf("later"), patternOf("turned down")
	authorised, accessed, otherwise      = patternOf("authorised"), patternOf("accessed"), patternOf("otherwise")
	negators, fillers, quantifiers       = set("negators"), set("fillers"), set("quantifiers")
	alternatives, modals, conditions     = set("alternatives"), set("modals"), set("conditions")
	lacks, possession, agents            = set("lacks"), set("possession"), set("agents")
	prepositions, courtesies             = set("prepositions"), set("courtesies")
	fieldNames, abbreviations            = set("field names"), set("abbreviations")
	statusWords, statusFillers, units    = set("status words"), set("status fillers"), set("units")
	tissElements, tissOpeners            = set("tiss elements"), set("tiss openers")
	tissJoints, tissLists, tissUncounted = set("tiss joints"), set("tiss lists"), set("uncounted")
)
