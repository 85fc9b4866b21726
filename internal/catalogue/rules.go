package catalogue

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
)

// ruleSet are the rules of one policy on their way to a classifier.
type ruleSet struct {
	*builder
	rules []classify.Rule
	// origins of the rules in the file, and the rules as they are written there.
	origins []origin
	written []written
	// names of rules, to their paths.
	names map[string]string
	// texts that rules match, each behind its list's key, to where they stand.
	texts map[string]standing
	// items that rules match so far.
	items int
}

// origin is where a rule was written: at path, and there, where it was made of one code of several, the code-th.
type origin struct {
	path string
	code int
}

// allCodes is an origin's code where the rule has its lists whole.
const allCodes = -1

type written struct {
	path string
	classify.Rule
}

type standing struct {
	path  string
	class classify.Class
}

// rules compiles a policy's rules: first those of the file, then those that it extends, so that of one rank its own win.
func (b *builder) rules(path string, doc *policy) *classify.Classifier {
	s := &ruleSet{builder: b, names: make(map[string]string), texts: make(map[string]standing)}
	for _, builtIn := range []bool{false, true} {
		s.addAll(path+".permanent", doc.Permanent, builtIn, decision.Permanent, classify.Signature)
		s.addAll(path+".transient", doc.Transient, builtIn, decision.Transient, classify.Signature)
		s.addAll(path+".presumedPermanent", doc.PresumedPermanent, builtIn, decision.Permanent, classify.Refusal)
	}
	if b.patterns > maxPatterns || s.items > maxItems {
		b.problem(path, fmt.Sprintf("%d codes, phrases and the like, and with the policies before it %d patterns", s.items,
			b.patterns),
			fmt.Sprintf("at most %d of a policy and %d of a catalogue", maxItems, maxPatterns))
		return nil
	}
	classifier, err := classify.New(s.rules, doc.Vocabulary)
	if wrong, ok := errors.AsType[classify.Errors](err); ok {
		for _, e := range wrong {
			s.wrong(path, &e)
		}
		return nil
	}
	for i := range s.written {
		s.checkExamples(classifier, &s.written[i])
	}
	return classifier
}

// wrong reports what of a rule, or of the policy's vocabulary, cannot be compiled.
func (s *ruleSet) wrong(path string, e *classify.RuleError) {
	at, item := path+".vocabulary", e.Item
	if e.Rule >= 0 {
		from := s.origins[e.Rule]
		at, item = from.path, max(item, from.code)
	}
	if at += "." + e.List; e.List != "rank" {
		at = itemOf(at, item)
	}
	if n, there := s.places[at]; !there || n.node.Value != "" { // what is empty was reported
		s.problem(at, e.Found, e.Expected)
	}
}

// addAll adds the rules of a list, those of the file or those of the built-in catalogue.
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

// add makes one rule of what the document has, or, where it has nothing but codes and no name, one of each code.
func (s *ruleSet) add(path string, r classify.Rule) {
	s.patterns += len(r.Patterns)
	s.written = append(s.written, written{path, r})
	var keys, given []string
	for _, l := range r.Lists() {
		if keys = append(keys, l.Key); s.has(path + "." + l.Key) {
			given = append(given, l.Key)
		}
		s.list(path+"."+l.Key, l.Key, l.Items, r.Class)
	}
	if len(given) == 0 && s.at(path).Kind == yaml.MappingNode { // what is no mapping was reported
		s.problem(path, "a rule that matches nothing", "at least one of "+strings.Join(keys, ", "))
	}
	s.name(path, r.Name)
	if !s.has(path+".name") && !slices.ContainsFunc(given, func(key string) bool { return key != "codes" }) {
		s.addCodes(path, r)
		return
	}
	for _, key := range []string{"name", "reason"} {
		if at := path + "." + key; !s.has(at) {
			s.problem(at, "nothing", "this key, as the rule is more than codes that are reasons themselves")
		}
	}
	s.rules, s.origins = append(s.rules, r), append(s.origins, origin{path, allCodes})
}

// addCodes makes a rule of each code, which is its own name and, unless there is another, its reason.
func (s *ruleSet) addCodes(path string, r classify.Rule) {
	for i, code := range r.Codes {
		if code == "" {
			continue // reported
		}
		one := r
		one.Name, one.Reason, one.Codes = code, cmp.Or(r.Reason, classify.Reason(code)), []string{code}
		one.Matches, one.Not = nil, nil
		if !s.has(path+".reason") && !slices.Contains(decision.RuleReasons(), one.Reason) {
			s.mismatch(itemOf(path+".codes", i), "a code that is a reason itself, or the key reason beside codes")
		}
		s.rules, s.origins = append(s.rules, one), append(s.origins, origin{path, i})
	}
}

// name reports a rule's name that is another rule's.
func (s *ruleSet) name(path, name string) {
	if first, twice := s.names[name]; twice {
		s.mismatch(path+".name", fmt.Sprintf("a name that no other rule of the policy has (line %d has it)", s.line(first)))
	} else if name != "" {
		s.names[name] = path + ".name"
	}
}

// list reports items of a rule's list that an earlier rule matches, or the same one.
func (s *ruleSet) list(path, list string, items []string, class classify.Class) {
	s.items += len(items)
	for i, item := range items {
		at := itemOf(path, i)
		if first := s.taken(list, item, class); first != "" {
			s.mismatch(at, fmt.Sprintf("one that is not matched already (%s on line %d does)", first, s.line(first)))
			continue
		}
		for _, key := range matchedBy(list, item) {
			if _, there := s.texts[key]; !there {
				s.texts[key] = standing{at, class}
			}
		}
	}
}

// taken returns where all that item matches is matched already; empty for nowhere.
func (s *ruleSet) taken(list, item string, class classify.Class) (path string) {
	for _, key := range matchedBy(list, item) {
		first, taken := s.texts[key]
		if path = first.path; !taken {
			break
		}
	}
	// A number is a status too, and is not to be of another class as such.
	other := s.texts[map[string]string{"codes": "httpStatuses", "httpStatuses": "codes"}[list]+" "+item]
	if path == "" && other.class != class {
		path = other.path
	}
	return path
}

// matchedBy returns the keys of ruleSet.texts for one item: those of a hundred numbers for 5xx.
func matchedBy(list, item string) []string {
	if item == "" {
		return nil // reported
	}
	if hundred, ok := strings.CutSuffix(item, "xx"); ok && (list == "httpStatuses" || list == "tissCodes") {
		keys := make([]string, 100)
		for i := range keys {
			keys[i] = list + " " + hundred + strconv.Itoa(100 + i)[1:]
		}
		return keys
	}
	if list == "phrases" || list == "tissFaults" {
		item = strings.ToLower(strings.Join(strings.Fields(item), " "))
	}
	return []string{list + " " + item}
}

// checkExamples reports texts that a rule must match and does not, or the other way round.
func (s *ruleSet) checkExamples(c *classify.Classifier, rule *written) {
	matches := func(m classify.Match) bool {
		return m.Name != "" && (m.Name == rule.Name || slices.Contains(rule.Codes, m.Name))
	}
	for j, text := range rule.Matches {
		if m := c.Classify(text, 0); !matches(m) {
			s.mismatch(itemOf(rule.path+".matches", j), "a text that the rule matches ("+cmp.Or(m.Name, "no rule")+" does)")
		}
	}
	for j, text := range rule.Not {
		if m := c.Classify(text, 0); matches(m) {
			s.mismatch(itemOf(rule.path+".not", j), "a text that the rule does not match ("+quote(m.Text)+" does)")
		}
	}
}
