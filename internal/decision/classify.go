package decision

import (
	"fmt"
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

// Classifier finds the first rule that matches an error: permanent ones first, then transient ones, each in the order
// they were given (R2). It looks for all of them in one pass, whose cost does not grow with their number. Safe for
// concurrent use; the zero value knows no rule.
type Classifier struct {
	rules []Rule
	// matchers in the order of precedence; their number is their place, from 1.
	matchers []matcher
	words    index // their places are those of matchers
	numbers  map[string]*numberRules
	patterns []*pattern
	// folds tells that some matcher looks at the folded form.
	folds bool
}

// matcher is one of a rule's ways to match.
type matcher struct {
	rule *Rule
	name string
	kind matcherKind
	// pattern to try, of kind byPattern.
	pattern *pattern
}

type matcherKind uint8

// folded tells whether matchers of that kind look at the folded form.
func (k matcherKind) folded() bool { return k > byWord }

const (
	byNumber  matcherKind = iota
	byCode                // anywhere in the normalised form
	byWord                // whole words of the normalised form
	byPhrase              // whole words of the folded form
	byPrefix              // words of the folded form, the last with any ending
	byPattern             // the plain form, where its literal stands in the folded one
)

// RuleError says which rule is wrong and what about it.
type RuleError struct {
	// Rule is its index among those given.
	Rule int
	// Field is the rule's own field, such as Codes; Item the index in it, below 0 where the field is no list.
	Field string
	Item  int
	// Found and Expected are for people.
	Found, Expected string
}

func (e *RuleError) Error() string { return e.Found + ", expected " + e.Expected }

// NewClassifier compiles rules. Its error is the first *RuleError.
func NewClassifier(rules []Rule) (*Classifier, error) {
	c := &Classifier{rules: slices.Clone(rules), numbers: make(map[string]*numberRules)}
	for _, class := range []ErrorClassification{Permanent, Transient} {
		for i := range c.rules {
			if c.rules[i].Class != class {
				continue
			}
			if err := c.add(i); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// Rules are those it was made of.
func (c *Classifier) Rules() []Rule {
	if c == nil {
		return nil
	}
	return c.rules
}

// add compiles one rule's matchers.
func (c *Classifier) add(i int) error {
	r := &c.rules[i]
	for _, list := range []struct {
		field string
		items []string
		add   func(*Rule, string) error
	}{
		{"Codes", r.Codes, c.addCode},
		{"Statuses", r.Statuses, c.addStatus},
		{"TISSFaults", r.TISSFaults, c.addFault},
		{"TISSCodes", r.TISSCodes, c.addTISSCode},
		{"Phrases", r.Phrases, c.addPhrase},
		{"Patterns", r.Patterns, c.addPattern},
	} {
		for j, item := range list.items {
			if err := list.add(r, item); err != nil {
				return &RuleError{Rule: i, Field: list.field, Item: j, Found: strconv.Quote(item), Expected: err.Error()}
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

func (c *Classifier) addCode(r *Rule, code string) error {
	if isNumber(code) {
		return c.number(code, func(n *numberRules) *int { return &n.code }, matcher{rule: r, name: code})
	}
	room := make([]byte, len(code))
	if string(room[:normalise(room, code)]) != code || len(code) < gramBytes {
		return fmt.Errorf("at least %d upper-case letters, digits and single underscores, or digits only (R3)", gramBytes)
	}
	c.words.add(code, c.place(matcher{rule: r, name: code, kind: byCode}))
	return nil
}

func (c *Classifier) addStatus(r *Rule, s string) error {
	statuses, ok := spread(s, 3, 100, 599)
	if !ok {
		return fmt.Errorf("an HTTP status from 100 to 599, or a hundred of them such as 5xx")
	}
	return c.eachNumber(statuses, func(n *numberRules) *int { return &n.status }, r)
}

func (c *Classifier) addTISSCode(r *Rule, s string) error {
	codes, ok := spread(s, 4, 1000, 9999)
	if !ok {
		return fmt.Errorf("a code of four digits of table 38, or a hundred of them such as 10xx")
	}
	return c.eachNumber(codes, func(n *numberRules) *int { return &n.tiss }, r)
}

// eachNumber gives the numbers one matcher; where an earlier rule has one of them, that stays.
func (c *Classifier) eachNumber(numbers []string, of func(*numberRules) *int, r *Rule) error {
	place := c.place(matcher{rule: r, name: r.Name, kind: byNumber})
	for _, s := range numbers {
		if slot := of(c.numberOf(s)); *slot == 0 {
			*slot = place
		}
	}
	return nil
}

func (c *Classifier) number(s string, of func(*numberRules) *int, m matcher) error {
	if slot := of(c.numberOf(s)); *slot == 0 {
		*slot = c.place(m)
	}
	return nil
}

func (c *Classifier) numberOf(s string) *numberRules {
	if c.numbers[s] == nil {
		c.numbers[s] = &numberRules{}
	}
	return c.numbers[s]
}

func (c *Classifier) addFault(r *Rule, fault string) error {
	name := foldedName(fault)
	if len(name) < gramBytes || strings.Contains(name, "_") {
		return fmt.Errorf("one word of at least %d letters, such as LoginInvalido", gramBytes)
	}
	c.words.add(name, c.place(matcher{rule: r, name: r.Name, kind: byWord}))
	return nil
}

func (c *Classifier) addPhrase(r *Rule, phrase string) error {
	bare, anyEnd := strings.CutSuffix(phrase, "*")
	name := foldedName(bare)
	if len(name) < gramBytes || strings.Contains(bare, "*") {
		return fmt.Errorf("words of together at least %d letters; only the last may end in *", gramBytes)
	}
	kind := byPhrase
	if anyEnd {
		kind = byPrefix
	}
	c.folds = true
	c.words.add(name, c.place(matcher{rule: r, name: r.Name, kind: kind}))
	return nil
}

func (c *Classifier) addPattern(r *Rule, s string) error {
	p, err := compilePattern(s)
	if err != nil {
		return err
	}
	c.folds = true
	place := c.place(matcher{rule: r, name: r.Name, kind: byPattern, pattern: p})
	for _, literal := range p.literals {
		c.words.add(literal, place)
	}
	return nil
}
