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
	for _, list := range r.Lists() {
		for j, item := range list.Items {
			c.refuse(i, list.Key, j, item, c.addItem(list.Key, item, r, rank))
		}
	}
}

// roles of a rule's words, by the lists that they are in.
var roles = map[string]role{"tissFaults": nameRole, "phrases": phraseRole, "refusals": refusalRole,
	"approvals": approvalRole, "things": thingRole}

// addItem compiles an item of a rule's list, if that is evidence of that rank, and returns what is expected in the place
// of one that cannot be. TISS in its own place and a status beside the text are of rank TISS at least.
func (c *compiler) addItem(list, item string, r *Rule, rank Rank) (expected string) {
	own, marked := rank == r.Rank, rank == min(r.Rank, TISS)
	switch list {
	case "httpStatuses":
		if marked {
			expected = c.addStatus(item, r, rank, func(n *numberRules) *int { return &n.beside })
		}
		if own {
			expected = c.addStatus(item, r, rank, func(n *numberRules) *int { return &n.status })
		}
		return expected
	case "tissFaults", "tissCodes":
		own = marked
	}
	if !own {
		return ""
	}
	switch list {
	case "codes":
		return c.addCode(item, r, rank)
	case "tissCodes":
		return c.addTISSCode(item, r, rank)
	case "patterns":
		return c.addPattern(item, r, rank)
	}
	return c.addWords(item, use{role: roles[list], matcher: c.matcher(r, r.Name, rank)})
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

// addStatus adds an HTTP status, or a hundred of them, to where they are looked for.
func (c *compiler) addStatus(s string, r *Rule, rank Rank, where func(*numberRules) *int) (expected string) {
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
	words := text.ReadWords(bare)
	defer words.Free()
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

// maxProgram of a pattern's steps, and maxPatterns of all rules, bound what they cost.
const (
	maxProgram  = 4000
	maxPatterns = 1000
)

func (c *compiler) addPattern(s string, r *Rule, rank Rank) (expected string) {
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
	c.patterns = append(c.patterns, pattern{c.matcher(r, r.Name, rank), compiled})
	return ""
}

// isUnbounded reports whether a part of a pattern may go on for ever.
func isUnbounded(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0 ||
		slices.ContainsFunc(re.Sub, isUnbounded)
}
