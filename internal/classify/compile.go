package classify

import (
	"cmp"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// RuleError says, for people, what is wrong with a rule or the vocabulary.
type RuleError struct {
	// Rule is the rule's number among those given; -1 for the vocabulary.
	Rule int
	// List is the list's key in a catalogue, and Item the number of the wrong item in it.
	List            string
	Item            int
	Found, Expected string
}

// Errors holds everything that is wrong with some rules and a vocabulary.
type Errors []RuleError

func (e Errors) Error() string {
	return e[0].List + ": " + e[0].Found + ", expected " + e[0].Expected
}

// shortest is the least number of letters and digits in a needle.
const shortest = 2

type compiler struct {
	*Classifier
	wrong Errors
}

// piece is one item of a rule's lists, and the Match, without Text, of a message that has it.
type piece struct {
	RuleError // about this item, if it is invalid
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

// New compiles rules, in their order within each rank. It relies on the catalogue's schema for the form of ranks,
// codes, statuses and codes of table 38. Anything else that is wrong is returned as Errors.
func New(rules []Rule, vocabulary Vocabulary) (*Classifier, error) {
	c := compiler{Classifier: &Classifier{numbers: make(map[numberKey]int)}}
	c.needles.uses, c.codes.uses = make(map[string][]use), make(map[string][]use)
	var pieces []piece
	for i := range rules {
		for _, r := range rules[i].each() {
			r.Rank = cmp.Or(r.Rank, Signature)
			c.rules = append(c.rules, r)
			pieces = append(pieces, piecesOf(i, &r)...)
		}
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return int(a.Rank - b.Rank) })
	for _, p := range pieces {
		c.refuse(p.RuleError, c.add(&p))
	}
	c.addVocabulary(vocabulary)
	for list, role := range sayings {
		for _, phrase := range lists[list] {
			c.needles.add(phrase, use{role, none})
		}
	}
	if c.wrong != nil {
		return nil, c.wrong
	}
	slices.SortStableFunc(c.rules, func(a, b Rule) int { return int(a.Rank - b.Rank) })
	return c.Classifier, nil
}

// piecesOf lists the pieces of a rule. TISS in its own place, and a status beside the text, have rank TISS or a
// stronger one.
func piecesOf(number int, r *Rule) (all []piece) {
	says := Match{Class: r.Class, Rank: r.Rank, Name: r.Name, Reason: r.Reason, Team: r.Team, Hint: r.Hint.String()}
	for _, list := range r.Lists() {
		for j, item := range list.Items {
			if item == "" { // the schema refuses it
				continue
			}
			p := piece{RuleError{number, list.Key, j, strconv.Quote(item), ""}, says, item, roles[list.Key]}
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

// roles of a rule's items, by the list that they are in.
var roles = map[string]role{"codes": codeRole, "httpStatuses": statusRole, "tissFaults": nameRole, "tissCodes": tissRole,
	"phrases": phraseRole, "refusals": refusalRole, "approvals": approvalRole, "things": thingRole, "patterns": patternRole}

// add compiles a piece of a rule. If it is invalid, add returns what is expected in its place.
func (c *compiler) add(p *piece) (expected string) {
	number := len(c.matchers)
	c.matchers = append(c.matchers, p.Match)
	switch p.role {
	case codeRole:
		c.addCode(p.item, p.Rank, number)
	case besideRole, statusRole, tissRole:
		c.addNumber(p.item, p.role, number)
	case patternRole:
		return c.addPattern(p.item, number)
	default:
		return c.addWords(p.item, use{role: p.role, matcher: number})
	}
	return ""
}

// refuse records that an item is invalid, unless expected is empty.
func (c *compiler) refuse(e RuleError, expected string) {
	if e.Expected = expected; expected != "" {
		c.wrong = append(c.wrong, e)
	}
}

func (c *compiler) addCode(code string, rank Rank, number int) {
	if isNumber(code) {
		c.addNumber(code, codeRole, number)
		return
	}
	c.codes.add(code, use{matcher: number})
	for _, kind := range []string{"", "exception", "error", "fault"} {
		if rank == SpecifiedPermanent {
			c.addWords(strings.ReplaceAll(code, "_", "")+kind, use{role: nameRole, matcher: number})
		}
	}
}

// addNumber lets matcher match a number, or a hundred of them if s ends in xx, unless an earlier matcher does.
func (c *compiler) addNumber(s string, as role, matcher int) {
	n := numberKey{as, s}
	if _, taken := c.numbers[n]; !taken {
		c.numbers[n] = matcher
	}
}

func (c *compiler) addVocabulary(v Vocabulary) {
	for _, list := range []struct {
		key   string
		items []string
		role  role
	}{
		{"refusals", v.Refusals, refusalRole}, {"approvals", v.Approvals, approvalRole},
		{"bystanders", v.Bystanders, thingRole}, {"", lists["contrasts"], contrastRole}, {"", laterTries(), tryRole},
	} {
		for i, item := range list.items {
			c.refuse(RuleError{-1, list.key, i, strconv.Quote(item), ""}, c.addWords(item, use{role: list.role, matcher: none}))
		}
	}
}

// addWords adds words as a needle; the last may end in * for any ending.
func (c *compiler) addWords(s string, u use) (expected string) {
	bare, isOpen := strings.CutSuffix(s, "*")
	var r reading
	r.read(bare)
	needle := string(r.text)
	if len(strings.Trim(needle, " ")) < shortest || strings.Contains(bare, "*") {
		return "words of together at least 2 letters; only the last may end in *"
	}
	if isOpen {
		needle = needle[:len(needle)-1]
	}
	c.needles.add(needle, u)
	return ""
}

// pattern is a bounded regular expression.
type pattern struct {
	matcher int
	*regexp.Regexp
	// needed holds texts of which each match has one; none if such texts are not known.
	needed []string
}

// maxProgram bounds the steps of a pattern, and maxPatterns the patterns of all rules.
const (
	maxProgram  = 4000
	maxPatterns = 1000
)

func (c *compiler) addPattern(s string, matcher int) (expected string) {
	if len(c.patterns) == maxPatterns {
		return "at most " + strconv.Itoa(maxPatterns) + " patterns"
	}
	tree, err := syntax.Parse("(?i)"+s, syntax.Perl)
	if err != nil {
		return "a regular expression as RE2 reads them"
	}
	program, err := syntax.Compile(tree.Simplify())
	compiled := regexp.MustCompile("(?i)" + s)
	switch {
	case isUnbounded(tree):
		return "a bound such as {0,40}"
	case err != nil || len(program.Inst) > maxProgram:
		return "one of at most " + strconv.Itoa(maxProgram) + " steps"
	case compiled.MatchString(""):
		return "a pattern that matches some text"
	case strings.ContainsFunc(s, func(r rune) bool { return r > '~' || r < ' ' }):
		return "letters without accents, as messages are compared with it"
	}
	c.patterns = append(c.patterns, pattern{matcher, compiled, needed(tree)})
	return ""
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
