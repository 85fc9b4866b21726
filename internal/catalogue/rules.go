package catalogue

import (
	"cmp"
	"errors"
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
	items map[string]string
}

// rules compiles a policy's rules. The file's rules come before the built-in ones, so that they win within a rank.
func (b *builder) rules(path string, doc *policy) *classify.Classifier {
	s := &ruleSet{builder: b, items: make(map[string]string)}
	for _, builtIn := range []bool{false, true} {
		s.addAll(path+".permanent", doc.Permanent, builtIn, decision.Permanent, classify.Signature)
		s.addAll(path+".transient", doc.Transient, builtIn, decision.Transient, classify.Signature)
		s.addAll(path+".presumedPermanent", doc.PresumedPermanent, builtIn, decision.Permanent, classify.Refusal)
	}
	classifier, err := classify.New(s.rules, doc.Vocabulary)
	if wrong, ok := errors.AsType[classify.Errors](err); ok {
		for _, e := range wrong {
			at := path + ".vocabulary"
			if e.Rule >= 0 {
				at = s.paths[e.Rule]
			}
			s.problem(itemOf(at+"."+e.List, e.Item), e.Found, e.Expected)
		}
		return nil
	}
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
		s.add(at, r)
	}
}

// add adds a rule. It may lack name and reason if it holds nothing but codes that are reasons themselves: the schema
// asks for them otherwise.
func (s *ruleSet) add(path string, r classify.Rule) {
	s.rules, s.paths = append(s.rules, r), append(s.paths, path)
	for _, l := range r.Lists() {
		for i, item := range l.Items {
			s.once(itemOf(path+"."+l.Key, i), l.Key, item)
		}
	}
	s.once(path+".name", "name", r.Name)
	if s.has(path+".name") || s.has(path+".reason") {
		return
	}
	for i, code := range r.Codes {
		if code != "" && !slices.Contains(decision.RuleReasons(), classify.Reason(code)) {
			s.mismatch(itemOf(path+".codes", i), "a code that is a reason itself, or the key reason beside codes")
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
