package catalogue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
)

// ruleSet holds the rules of one policy until they are compiled.
type ruleSet struct {
	*builder
	rules []classify.Rule
	// paths holds each rule's path in the file.
	paths []string
	// items maps each name and list item, after its key, to its path.
	items    map[string]string
	patterns int
	isBroken bool // an item was refused
}

// rules compiles a policy's rules. The file's rules come before the built-in ones, so that they win within a rank.
func (b *builder) rules(path string, doc *policy) *classify.Classifier {
	s := &ruleSet{builder: b, items: make(map[string]string)}
	for _, builtIn := range []bool{false, true} {
		s.addAll(path+".permanent", doc.Permanent, builtIn, decision.Permanent, classify.Signature)
		s.addAll(path+".transient", doc.Transient, builtIn, decision.Transient, classify.Signature)
		s.addAll(path+".presumedPermanent", doc.PresumedPermanent, builtIn, decision.Permanent, classify.Refusal)
	}
	for _, l := range doc.Vocabulary.Lists() {
		for i, item := range l.Items {
			s.check(itemOf(path+".vocabulary."+l.Key, i), &l, item)
		}
	}
	if s.isBroken {
		return nil
	}
	classifier := classify.New(s.rules, doc.Vocabulary)
	for i := range s.rules {
		s.checkExamples(classifier, s.paths[i], &s.rules[i])
	}
	return classifier
}

// addAll adds the rules of a list: the built-in ones, or the file's.
func (s *ruleSet) addAll(path string, rules []classify.Rule, builtIn bool, class classify.Class, rank classify.Rank) {
	for i, r := range rules {
		at := itemOf(path, i)
		if s.ofBuiltInRule(at) != builtIn {
			continue
		}
		if r.Class, r.Rank = class, cmp.Or(r.Rank, rank); class == decision.Permanent {
			s.team(at+".team", r.Team)
		}
		s.rules, s.paths = append(s.rules, r), append(s.paths, at)
		s.once(at+".name", "name", r.Name)
		for _, l := range r.Lists() {
			for j, item := range l.Items {
				at := itemOf(at+"."+l.Key, j)
				s.once(at, l.Key, item)
				s.check(at, &l, item)
			}
		}
	}
}

// once reports a name or list item that stands in the policy's rules already.
func (s *ruleSet) once(at, list, item string) {
	key := list + " " + strings.ToLower(strings.Join(strings.Fields(item), " "))
	switch first, twice := s.items[key]; {
	case item == "": // already reported
	case twice:
		s.mismatch(at, fmt.Sprintf("one that no rule before it has (%s on line %d)", first, s.line(first)))
	default:
		s.items[key] = at
	}
}

// mostPatterns bounds the patterns of all rules.
const mostPatterns = 1000

// check reports an item that its list cannot hold.
func (s *ruleSet) check(at string, l *classify.List, item string) {
	if l.Key == "patterns" {
		s.patterns++
	}
	err := fmt.Errorf("at most %d patterns", mostPatterns)
	if s.patterns <= mostPatterns {
		err = l.Check(item)
	}
	if err != nil && item != "" { // an empty one is reported already
		s.mismatch(at, err.Error())
		s.isBroken = true
	}
}

// checkExamples reports examples that the rule matches or misses against its word.
func (s *ruleSet) checkExamples(c *classify.Classifier, path string, rule *classify.Rule) {
	matches := func(m classify.Match) bool {
		return m.Name != "" && (m.Name == rule.Name || slices.Contains(rule.Codes, m.Name))
	}
	for j, text := range rule.Matches {
		if m := c.Classify(text, 0); !matches(m) {
			s.mismatch(itemOf(path+".matches", j), "a text that the rule matches ("+cmp.Or(m.Name, "no rule")+" does)")
		}
	}
	for j, text := range rule.Not {
		if m := c.Classify(text, 0); matches(m) {
			s.mismatch(itemOf(path+".not", j), "a text that the rule does not match ("+quote(m.Text)+" does)")
		}
	}
}
