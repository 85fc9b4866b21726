package classify

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"retry-worker/internal/text"
)

// RuleError says, for people, what of a rule or the vocabulary is wrong.
type RuleError struct {
	// Rule is its number among those given; -1 where it is the vocabulary.
	Rule int
	// List is the key that a catalogue has for it, or rank, and Item the number of what is wrong in it.
	List            string
	Item            int
	Found, Expected string
}

// Errors is all that is wrong with some rules and a vocabulary.
type Errors []RuleError

func (e Errors) Error() string {
	return e[0].List + ": " + e[0].Found + ", expected " + e[0].Expected
}

// shortest number of letters and digits of what is looked for in words.
const shortest = 2

type compiler struct {
	*Classifier
	wrong Errors
}

// New compiles rules, in their order within each rank. Its error is an Errors.
func New(rules []Rule, vocabulary Vocabulary) (*Classifier, error) {
	c := compiler{Classifier: &Classifier{words: newAutomaton(), codes: newAutomaton(), numbers: make(map[string]*numberRules)}}
	rules = slices.Clone(rules)
	for i := range rules {
		c.check(i, &rules[i])
	}
	for rank := range Nothing {
		for i := range rules {
			c.add(i, &rules[i], rank)
		}
	}
	c.addVocabulary(vocabulary)
	if c.wrong != nil {
		return nil, c.wrong
	}
	c.rules = slices.Clone(rules)
	slices.SortStableFunc(c.rules, func(a, b Rule) int { return int(a.Rank - b.Rank) })
	c.words.build()
	c.codes.build()
	return c.Classifier, nil
}

// check fills in the rank and refuses what cannot be.
func (c *compiler) check(i int, r *Rule) {
	if r.Rank == 0 {
		r.Rank = Signature
	}
	allowed := map[Class][]Rank{
		Permanent: {SpecifiedPermanent, TISS, Signature, Refusal},
		Transient: {TISS, SpecifiedTransient, Signature, PassingFault},
	}[r.Class]
	if !slices.Contains(allowed, r.Rank) {
		c.wrong = append(c.wrong, RuleError{i, "rank", 0, strconv.Itoa(int(r.Rank)),
			"1, 2, 4 or 5 of a permanent rule, 2, 3, 4 or 6 of a transient one"})
	}
}

// add compiles what of the rule i is evidence of that rank.
func (c *compiler) add(i int, r *Rule, rank Rank) {
	own, marked := r.Rank, min(r.Rank, TISS)
	for _, list := range []struct {
		key   string
		items []string
		rank  Rank
		add   func(s string, r *Rule, rank Rank) (expected string)
	}{
		{"httpStatuses", r.Statuses, marked, c.addStatus(func(n *numberRules) *int { return &n.beside })},
		{"codes", r.Codes, own, c.addCode},
		{"httpStatuses", r.Statuses, own, c.addStatus(func(n *numberRules) *int { return &n.status })},
		{"tissFaults", r.TISSFaults, marked, c.addAs(nameRole)},
		{"tissCodes", r.TISSCodes, marked, c.addTISSCode},
		{"phrases", r.Phrases, own, c.addAs(phraseRole)},
		{"refusals", r.Refusals, own, c.addAs(refusalRole)},
		{"approvals", r.Approvals, own, c.addAs(approvalRole)},
		{"things", r.Things, own, c.addAs(thingRole)},
		{"patterns", r.Patterns, own, c.addPattern},
	} {
		if list.rank != rank {
			continue
		}
		for j, item := range list.items {
			c.refuse(i, list.key, j, item, list.add(item, r, rank))
		}
	}
}

// refuse takes up what is wrong with an item, where anything else is expected.
func (c *compiler) refuse(rule int, list string, i int, item, expected string) {
	if expected != "" {
		c.wrong = append(c.wrong, RuleError{rule, list, i, strconv.Quote(item), expected})
	}
}

// matcher returns the number of a new matcher.
func (c *compiler) matcher(r *Rule, name string, rank Rank) int {
	c.matchers = append(c.matchers, matcher{r, name, rank})
	return len(c.matchers) - 1
}

// codeForm is R3's.
var codeForm = regexp.MustCompile(`^[A-Z0-9]+(_[A-Z0-9]+)*$`)

func (c *compiler) addCode(code string, r *Rule, rank Rank) (expected string) {
	number := c.matcher(r, code, rank)
	if isNumber(code) {
		setFirst(&c.number(code).code, number)
		return ""
	}
	if !codeForm.MatchString(code) || len(code) < 4 {
		return "at least 4 upper-case letters, digits and single underscores, or digits only (R3)"
	}
	c.codes.add(code, use{matcher: number, length: len(code)})
	for _, kind := range []string{"", "exception", "error", "fault"} {
		if r.Rank == SpecifiedPermanent {
			c.addWords(strings.ReplaceAll(code, "_", "")+kind, use{role: nameRole, matcher: number})
		}
	}
	return ""
}

// addStatus returns what adds an HTTP status where it comes beside the text, or in the text.
func (c *compiler) addStatus(where func(*numberRules) *int) func(string, *Rule, Rank) string {
	return func(s string, r *Rule, rank Rank) string {
		statuses := spread(s, 100, 599)
		if statuses == nil {
			return "an HTTP status from 100 to 599, or a hundred of them such as 5xx"
		}
		number := c.matcher(r, r.Name, rank)
		for _, status := range statuses {
			setFirst(where(c.number(status)), number)
		}
		return ""
	}
}

func (c *compiler) addTISSCode(s string, r *Rule, rank Rank) (expected string) {
	codes := spread(s, 1000, 9999)
	if codes == nil {
		return "a code of four digits of table 38, or a hundred of them such as 10xx"
	}
	number := c.matcher(r, r.Name, rank)
	for _, code := range codes {
		if n := c.number(code); n.tiss == none {
			n.tiss, n.group = number, len(codes) > 1
		}
	}
	return ""
}

// number returns the matchers of a number so far.
func (c *compiler) number(code string) *numberRules {
	if c.numbers[code] == nil {
		c.numbers[code] = &numberRules{none, none, none, none, false}
	}
	return c.numbers[code]
}

// setFirst leaves an earlier matcher as it is.
func setFirst(slot *int, number int) {
	if *slot == none {
		*slot = number
	}
}

// addAs returns what adds words for a role.
func (c *compiler) addAs(as role) func(string, *Rule, Rank) string {
	return func(s string, r *Rule, rank Rank) string {
		return c.addWords(s, use{role: as, matcher: c.matcher(r, r.Name, rank)})
	}
}

func (c *compiler) addVocabulary(v Vocabulary) {
	for _, list := range []struct {
		key   string
		items []string
		role  role
	}{
		{"refusals", v.Refusals, refusalRole}, {"approvals", v.Approvals, approvalRole},
		{"bystanders", v.Bystanders, thingRole}, {"", contrasts, contrastRole}, {"", laterTries(), tryRole},
	} {
		for i, item := range list.items {
			c.refuse(-1, list.key, i, item, c.addWords(item, use{role: list.role, matcher: none}))
		}
	}
}

// addWords adds words, whose last may end in * for any ending, as a needle.
func (c *compiler) addWords(s string, u use) (expected string) {
	bare, isOpen := strings.CutSuffix(s, "*")
	var words text.Words
	words.Read(bare)
	needle := " "
	for i := range words.All {
		needle += words.At(i) + " "
	}
	if len(strings.Trim(needle, " ")) < shortest || strings.Contains(bare, "*") {
		return "words of together at least 2 letters; only the last may end in *"
	}
	if isOpen {
		needle = needle[:len(needle)-1]
	}
	u.length = len(words.All)
	c.words.add(needle, u)
	return ""
}

// spread lists the numbers in [least, most] that s means: itself, or with xx at its end a hundred of them; nil where
// one is outside.
func spread(s string, least, most int) []string {
	head, isGroup := strings.CutSuffix(s, "xx")
	first, err := strconv.Atoi(head)
	if err != nil || !isNumber(head) || head[0] == '0' {
		return nil
	}
	last := first
	if isGroup {
		first, last = first*100, first*100+99
	}
	if first < least || last > most {
		return nil
	}
	var numbers []string
	for n := first; n <= last; n++ {
		numbers = append(numbers, strconv.Itoa(n))
	}
	return numbers
}

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

func (c *compiler) addPattern(s string, r *Rule, rank Rank) (expected string) {
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return "a regular expression as RE2 reads them"
	}
	if expected = unsound(tree); expected != "" {
		return expected
	}
	if steps(tree) > maxProgram {
		return "one of at most " + strconv.Itoa(maxProgram) + " steps"
	}
	c.patterns = append(c.patterns, pattern{c.matcher(r, r.Name, rank), regexp.MustCompile(s)})
	return ""
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

// unsound returns what is expected in place of what in a pattern may go on for ever, and of letters that no plain text
// holds; empty where there is none.
func unsound(re *syntax.Regexp) (expected string) {
	const bound = "a bound such as {0,40}"
	switch re.Op {
	case syntax.OpStar, syntax.OpPlus:
		return bound
	case syntax.OpRepeat:
		if re.Max < 0 || re.Max > maxRepeat {
			return bound
		}
	case syntax.OpEmptyMatch:
		return "a pattern that matches some text"
	case syntax.OpLiteral:
		if slices.ContainsFunc(re.Rune, func(r rune) bool { return isForeign(r, re.Flags) }) {
			return "lower case without accents, as messages are compared with it"
		}
	}
	for _, sub := range re.Sub {
		if expected := unsound(sub); expected != "" {
			return expected
		}
	}
	return ""
}

// isForeign reports whether no plain text holds r.
func isForeign(r rune, flags syntax.Flags) bool {
	if flags&syntax.FoldCase != 0 {
		return r > 0x7e
	}
	return 'A' <= r && r <= 'Z' || r < ' ' || r > 0x7e
}
