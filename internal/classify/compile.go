package classify

import (
	"slices"
	"strconv"
	"strings"

	"retry-worker/internal/text"
)

// RuleError says which rule is wrong and what about it.
type RuleError struct {
	// Rule is its index among those given; below 0 for the vocabulary.
	Rule int
	// Field is the rule's own field, such as Codes; Item the index in it, below 0 where the field is no list.
	Field string
	Item  int
	// Found and Expected are for people.
	Found, Expected string
}

func (e *RuleError) Error() string { return e.Found + ", expected " + e.Expected }

// refused returns the error of one item, whose place the caller fills in.
func refused(item, expected string) *RuleError {
	return &RuleError{Found: strconv.Quote(item), Expected: expected}
}

// shortest number of letters and digits of what is looked for in words.
const shortest = 2

type compiler struct {
	*Classifier
	trie trie
}

// New compiles rules, in their order within each rank. Its error is a *RuleError.
func New(rules []Rule, vocabulary Vocabulary) (*Classifier, error) {
	c := compiler{Classifier: &Classifier{numbers: make(map[string]numberRules)}}
	rules = slices.Clone(rules)
	for i := range rules {
		if err := rules[i].check(); err != nil {
			err.Rule = i
			return nil, err
		}
	}
	for rank := SpecifiedPermanent; rank < Nothing; rank++ {
		for i := range rules {
			if err := c.add(&rules[i], rank); err != nil {
				err.Rule = i
				return nil, err
			}
		}
	}
	if err := c.addVocabulary(vocabulary); err != nil {
		return nil, err
	}
	c.rules = slices.Clone(rules)
	slices.SortStableFunc(c.rules, func(a, b Rule) int { return int(a.Rank - b.Rank) })
	c.words = c.trie.build()
	return c.Classifier, nil
}

// check fills in the rank and refuses what cannot be.
func (r *Rule) check() *RuleError {
	if r.Rank == 0 {
		r.Rank = Signature
	}
	allowed := map[Class][]Rank{
		Permanent: {SpecifiedPermanent, TISS, Signature, Refusal},
		Transient: {TISS, SpecifiedTransient, Signature, PassingFault},
	}[r.Class]
	wrong := func(field, found, expected string) *RuleError {
		return &RuleError{Field: field, Item: -1, Found: found, Expected: expected}
	}
	switch {
	case allowed == nil:
		return wrong("Class", strconv.Quote(string(r.Class)), "PERMANENT or TRANSIENT")
	case !slices.Contains(allowed, r.Rank):
		expected := "1, 2, 4 or 5 of a permanent rule, 2, 3, 4 or 6 of a transient one"
		return wrong("Rank", strconv.Itoa(int(r.Rank)), expected)
	}
	return nil
}

// add compiles what of one rule is evidence of that rank.
func (c *compiler) add(r *Rule, rank Rank) *RuleError {
	if rank == min(r.Rank, TISS) { // beside the text a status is in its own place
		if err := c.addStatuses(r, rank); err != nil {
			return err
		}
	}
	for _, list := range []struct {
		field string
		items []string
		rank  Rank
		add   func(*Rule, string) *RuleError
	}{
		{"Codes", r.Codes, r.Rank, c.addCode},
		{"Statuses", r.Statuses, r.Rank, c.addStatusInText},
		{"TISSFaults", r.TISSFaults, min(r.Rank, TISS), c.addFault},
		{"TISSCodes", r.TISSCodes, min(r.Rank, TISS), c.addTISSCode},
		{"Phrases", r.Phrases, r.Rank, c.addPhrase},
		{"Refusals", r.Refusals, r.Rank, c.addRefusal},
		{"Approvals", r.Approvals, r.Rank, c.addApproval},
		{"Things", r.Things, r.Rank, c.addThing},
		{"Patterns", r.Patterns, r.Rank, c.addPattern},
	} {
		if list.rank != rank {
			continue
		}
		for j, item := range list.items {
			if wrong := list.add(r, item); wrong != nil {
				wrong.Field, wrong.Item = list.field, j
				return wrong
			}
		}
	}
	return nil
}

// matcher returns the number of a new matcher.
func (c *compiler) matcher(r *Rule, name string, rank Rank) int {
	c.matchers = append(c.matchers, matcher{r, name, rank})
	return len(c.matchers) - 1
}

func (c *compiler) addCode(r *Rule, code string) *RuleError {
	number := c.matcher(r, code, r.Rank)
	if isNumber(code) {
		n := c.number(code)
		setFirst(&n.code, number)
		c.numbers[code] = n
		return nil
	}
	normal := string(text.Normal(nil, code, nil))
	if strings.ToUpper(strings.ReplaceAll(normal, " ", "_")) != code || len(strings.Trim(normal, " ")) < 4 {
		return refused(code, "at least 4 upper-case letters, digits and single underscores, or digits only (R3)")
	}
	c.trie.add(normal, use{role: codeRole, matcher: number})
	for _, kind := range []string{"", "exception", "error", "fault"} {
		if r.Rank == SpecifiedPermanent {
			c.trie.add(" "+strings.ReplaceAll(normal, " ", "")+kind+" ", use{role: nameRole, matcher: number})
		}
	}
	return nil
}

func (c *compiler) addStatuses(r *Rule, rank Rank) *RuleError {
	for j, s := range r.Statuses {
		statuses := spread(s, 100, 599)
		if statuses == nil {
			wrong := refused(s, "an HTTP status from 100 to 599, or a hundred of them such as 5xx")
			wrong.Field, wrong.Item = "Statuses", j
			return wrong
		}
		number := c.matcher(r, r.Name, rank)
		for _, status := range statuses {
			n := c.number(status)
			setFirst(&n.beside, number)
			c.numbers[status] = n
		}
	}
	return nil
}

func (c *compiler) addStatusInText(r *Rule, s string) *RuleError {
	number := c.matcher(r, r.Name, r.Rank)
	for _, status := range spread(s, 100, 599) {
		n := c.number(status)
		setFirst(&n.status, number)
		c.numbers[status] = n
	}
	return nil
}

func (c *compiler) addTISSCode(r *Rule, s string) *RuleError {
	codes := spread(s, 1000, 9999)
	if codes == nil {
		return refused(s, "a code of four digits of table 38, or a hundred of them such as 10xx")
	}
	number := c.matcher(r, r.Name, min(r.Rank, TISS))
	for _, code := range codes {
		n := c.number(code)
		if n.tiss < 0 {
			n.tiss, n.group = number, len(codes) > 1
		}
		c.numbers[code] = n
	}
	return nil
}

// number returns the matchers of a number so far.
func (c *compiler) number(code string) numberRules {
	if n, known := c.numbers[code]; known {
		return n
	}
	return numberRules{code: -1, beside: -1, status: -1, tiss: -1}
}

// setFirst leaves an earlier matcher as it is.
func setFirst(slot *int, number int) {
	if *slot < 0 {
		*slot = number
	}
}

func (c *compiler) addFault(r *Rule, fault string) *RuleError {
	return c.addWords(fault, use{role: nameRole, matcher: c.matcher(r, r.Name, min(r.Rank, TISS))})
}

func (c *compiler) addPhrase(r *Rule, s string) *RuleError {
	return c.addWords(s, use{role: phraseRole, matcher: c.matcher(r, r.Name, r.Rank)})
}

func (c *compiler) addRefusal(r *Rule, s string) *RuleError {
	return c.addWords(s, use{role: refusalRole, matcher: c.matcher(r, r.Name, r.Rank)})
}

func (c *compiler) addApproval(r *Rule, s string) *RuleError {
	return c.addWords(s, use{role: approvalRole, matcher: c.matcher(r, r.Name, r.Rank)})
}

func (c *compiler) addThing(r *Rule, s string) *RuleError {
	return c.addWords(s, use{role: thingRole, matcher: c.matcher(r, r.Name, r.Rank)})
}

func (c *compiler) addVocabulary(v Vocabulary) *RuleError {
	for _, list := range []struct {
		field string
		items []string
		role  role
	}{
		{"Refusals", v.Refusals, refusalRole}, {"Approvals", v.Approvals, approvalRole},
		{"Bystanders", v.Bystanders, thingRole}, {"", contrasts, contrastRole}, {"", laterTries(), tryRole},
	} {
		for j, item := range list.items {
			if wrong := c.addWords(item, use{role: list.role, matcher: none}); wrong != nil {
				wrong.Rule, wrong.Field, wrong.Item = -1, list.field, j
				return wrong
			}
		}
	}
	return nil
}

// addWords adds words, whose last may end in * for any ending, as a needle.
func (c *compiler) addWords(s string, u use) *RuleError {
	bare, open := strings.CutSuffix(s, "*")
	words, _ := text.Words(nil, bare, nil)
	needle := string(words)
	if len(strings.Trim(needle, "., ")) < shortest || strings.Contains(bare, "*") {
		return refused(s, "words of together at least 2 letters; only the last may end in *")
	}
	if open {
		needle = needle[:len(needle)-1]
	}
	u.open = open
	c.trie.add(needle, u)
	return nil
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
