package decision

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// ErrorClassification is the value object of RN-BIL-005 §12.2, with R4's labels.
type ErrorClassification string

// The classifications.
const (
	Transient ErrorClassification = "TRANSIENT"
	Permanent ErrorClassification = "PERMANENT"
	Unknown   ErrorClassification = "UNKNOWN"
)

// Classifier finds the first rule that matches an error: permanent ones first, then transient ones (R2), then those that
// presume an error to be permanent, each in the order they were given. It looks for all of them in one pass, whose cost
// does not grow with their number. Safe for concurrent use; the zero value knows no rule.
type Classifier struct {
	rules []Rule
	// matchers in the order of precedence; a matcher's place is its index and 1.
	matchers []matcher
	// texts that stand for a matcher: codes, faults, phrases and the literals of patterns.
	texts   index
	numbers numberIndex
	words   []wordGroups
	// patterns in the order of precedence.
	patterns []*pattern
	// literals that patterns and words require, by their kinds and texts, with their numbers; the words that each of
	// them anchors.
	literals map[literal]int
	anchored [][]int
	// gapped tells that the key of some code is no part of one word.
	gapped bool
}

// matcher is one of a rule's ways to match.
type matcher struct {
	rule *Rule
	// name that stands in matchedRule.
	name string
}

// NewClassifier compiles rules. Its error is a *RuleError, the first in order of precedence.
func NewClassifier(rules []Rule) (*Classifier, error) {
	c := &Classifier{rules: slices.Clone(rules)}
	for i, r := range c.rules {
		if r.Class != Permanent && r.Class != Transient {
			return nil, &RuleError{i, "Class", -1, strconv.Quote(string(r.Class)), "PERMANENT or TRANSIENT"}
		}
	}
	for rank := range ranks {
		for i := range c.rules {
			if c.rules[i].rank() != rank {
				continue
			}
			runtime.Gosched() // a catalogue is taken up while jobs are decided
			if err := c.add(i); err != nil {
				return nil, err
			}
		}
	}
	c.texts.seal()
	return c, nil
}

// ranks of rules: permanent, transient, presumed permanent.
const ranks = 3

func (r *Rule) rank() int {
	switch {
	case r.Class == Transient:
		return 1
	case r.Presumed:
		return 2
	default:
		return 0
	}
}

// Rules are those it was made of, in the order of precedence.
func (c *Classifier) Rules() []Rule {
	if c == nil {
		return nil
	}
	rules := slices.Clone(c.rules)
	slices.SortStableFunc(rules, func(a, b Rule) int { return a.rank() - b.rank() })
	return rules
}

// add compiles one rule's matchers.
func (c *Classifier) add(i int) error {
	r := &c.rules[i]
	for _, list := range []struct {
		field string
		items []string
		add   func(*Rule, string) *RuleError
	}{
		{"Codes", r.Codes, c.addCode},
		{"Statuses", r.Statuses, c.addStatus},
		{"TISSFaults", r.TISSFaults, c.addFault},
		{"TISSCodes", r.TISSCodes, c.addTISSCode},
		{"Phrases", r.Phrases, c.addPhrase},
		{"Words", r.Words, c.addWords},
		{"Patterns", r.Patterns, c.addPattern},
	} {
		for j, item := range list.items {
			if wrong := list.add(r, item); wrong != nil {
				wrong.Rule, wrong.Field, wrong.Item = i, list.field, j
				return wrong
			}
		}
	}
	return nil
}

// place of the next matcher.
func (c *Classifier) place(m matcher) int {
	c.matchers = append(c.matchers, m)
	return len(c.matchers)
}

func (c *Classifier) addCode(r *Rule, code string) *RuleError {
	m := matcher{rule: r, name: code}
	if isNumber(code) {
		setFirst(&c.numbers.add(code).code, c.place(m))
		return nil
	}
	if len(code) < shortKey || normalForm.of(code) != code {
		return refused(code, "at least 4 upper-case letters, digits and single underscores, or digits only (R3)")
	}
	if !c.texts.add(needle{text: code, kind: byCode, number: c.place(m)}) {
		c.gapped = true
	}
	return nil
}

func (c *Classifier) addStatus(r *Rule, s string) *RuleError {
	statuses := spread(s, 100, 599)
	if statuses == nil {
		return refused(s, "an HTTP status from 100 to 599, or a hundred of them such as 5xx")
	}
	place := c.place(matcher{r, r.Name})
	for _, status := range statuses {
		setFirst(&c.numbers.add(status).status, place)
	}
	return nil
}

func (c *Classifier) addTISSCode(r *Rule, s string) *RuleError {
	codes := spread(s, 1000, 9999)
	if codes == nil {
		return refused(s, "a code of four digits of table 38, or a hundred of them such as 10xx")
	}
	place := c.place(matcher{r, r.Name})
	for _, code := range codes {
		setFirst(&c.numbers.add(code).tiss, place)
	}
	return nil
}

// setFirst leaves the place of an earlier matcher as it is.
func setFirst(slot *int, place int) {
	if *slot == 0 {
		*slot = place
	}
}

func (c *Classifier) addFault(r *Rule, fault string) *RuleError {
	name := foldedName(fault)
	if len(name) < shortKey || strings.Contains(name, "_") {
		return refused(fault, "one word of at least 4 letters, such as LoginInvalido")
	}
	c.texts.add(needle{text: name, kind: byPhrase, number: c.place(matcher{r, r.Name})})
	return nil
}

func (c *Classifier) addPhrase(r *Rule, phrase string) *RuleError {
	bare, anyEnd := strings.CutSuffix(phrase, "*")
	name := foldedName(bare)
	if len(name) < shortKey || strings.Contains(bare, "*") {
		return refused(phrase, "words of together at least 4 letters; only the last may end in *")
	}
	kind := byPhrase
	if anyEnd {
		kind = byPrefix
	}
	c.texts.add(needle{text: name, kind: kind, number: c.place(matcher{r, r.Name})})
	return nil
}

func (c *Classifier) addPattern(r *Rule, s string) *RuleError {
	p, literals, wrong := compilePattern(s)
	if wrong != nil {
		return wrong
	}
	p.place = c.place(matcher{r, r.Name})
	c.patterns = append(c.patterns, p)
	for _, list := range literals {
		numbers := make([]int, len(list))
		for i, literal := range list {
			numbers[i] = c.literal(literal, ofPattern)
		}
		p.literals = append(p.literals, numbers)
	}
	return nil
}

// literal is a text that a pattern or an entry of words requires.
type literal struct {
	text string
	kind needleKind
}

// literal is the number of a literal, which many may share.
func (c *Classifier) literal(text string, kind needleKind) int {
	l := literal{text, kind}
	n, known := c.literals[l]
	if !known {
		if c.literals == nil {
			c.literals = make(map[literal]int)
		}
		n = len(c.literals)
		c.literals[l] = n
		c.anchored = append(c.anchored, nil)
		c.texts.add(needle{text: text, kind: kind, number: n})
	}
	return n
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
	numbers := make([]string, 0, last-first+1)
	for n := first; n <= last; n++ {
		numbers = append(numbers, strconv.Itoa(n))
	}
	return numbers
}
