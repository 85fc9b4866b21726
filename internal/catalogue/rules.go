package catalogue

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/decision"
)

// ruleSet are the rules of one policy on their way to a classifier.
type ruleSet struct {
	*builder
	rules []decision.Rule
	// origins of the rules in the file.
	origins []origin
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

type standing struct {
	path  string
	class decision.ErrorClassification
}

// matcherList is one of the lists of what a rule matches.
type matcherList struct {
	key   string
	items []string
}

func (m *matchers) lists() []matcherList {
	return []matcherList{
		{"codes", textsOf(m.Codes)}, {"httpStatuses", textsOf(m.HTTPStatuses)}, {"tissFaults", m.TISSFaults},
		{"tissCodes", textsOf(m.TISSCodes)}, {"phrases", m.Phrases}, {"words", m.Words}, {"patterns", m.Patterns},
	}
}

// rules compiles a policy's rules.
func (b *builder) rules(path string, doc *policy) *decision.Classifier {
	s := &ruleSet{builder: b, names: make(map[string]string), texts: make(map[string]standing)}
	for i := range doc.Permanent {
		r, at := &doc.Permanent[i], itemOf(path+".permanent", i)
		b.team(at+".team", r.Team)
		s.add(at, &r.matchers, decision.Rule{Class: decision.Permanent, Team: decision.Team(r.Team), Hint: r.Hint})
	}
	for i := range doc.Transient {
		r := &doc.Transient[i]
		s.add(itemOf(path+".transient", i), &r.matchers, decision.Rule{Class: decision.Transient, Hint: r.Hint})
	}
	for i := range doc.PresumedPermanent {
		r, at := &doc.PresumedPermanent[i], itemOf(path+".presumedPermanent", i)
		b.team(at+".team", r.Team)
		s.add(at, &r.matchers, decision.Rule{Class: decision.Permanent, Presumed: true, Team: decision.Team(r.Team), Hint: r.Hint})
	}
	if b.patterns > maxPatterns || s.items > maxItems {
		b.problem(path, fmt.Sprintf("%d codes, phrases and the like, and with the policies before it %d patterns", s.items, b.patterns),
			fmt.Sprintf("at most %d of a policy and %d of a catalogue", maxItems, maxPatterns))
		return nil
	}
	classifier, err := decision.NewClassifier(s.rules)
	if err != nil {
		s.eachError()
		return nil
	}
	s.unreached(classifier)
	return classifier
}

// add makes rules of what a document's rule matches: one, or, where it has nothing but codes and no name, one for
// each code.
func (s *ruleSet) add(path string, m *matchers, r decision.Rule) {
	runtime.Gosched() // see yieldingReader
	s.patterns += len(m.Patterns)
	lists := m.lists()
	codesOnly := !slices.ContainsFunc(lists[1:], func(l matcherList) bool { return s.has(path + "." + l.key) })
	if codesOnly && !s.has(path+".codes") && s.isKind(path, yaml.MappingNode) {
		s.problem(path, "a rule that matches nothing", "at least one of codes, httpStatuses, tissFaults, tissCodes, phrases, words, patterns")
	}
	s.name(path, m.Name)
	for _, l := range lists {
		s.list(path+"."+l.key, l, r.Class)
	}
	if codesOnly && !s.has(path+".name") {
		s.addCodes(path, m, r)
		return
	}
	for _, key := range []string{"name", "reason"} {
		if at := path + "." + key; !s.has(at) {
			s.problem(at, "nothing", "this key, as the rule is more than codes that are reasons themselves")
		}
	}
	r.Name, r.Reason = m.Name, m.Reason
	r.Codes, r.Statuses, r.TISSFaults, r.TISSCodes, r.Phrases, r.Words, r.Patterns =
		lists[0].items, lists[1].items, lists[2].items, lists[3].items, lists[4].items, lists[5].items, lists[6].items
	s.rules, s.origins = append(s.rules, r), append(s.origins, origin{path, allCodes})
}

// isKind tells whether what stands at path is of that kind; what is another was reported.
func (s *ruleSet) isKind(path string, kind yaml.Kind) bool {
	at, ok := s.places[path]
	return ok && at.node.Kind == kind
}

// addCodes makes a rule of each code, which is its own name and, unless there is another, its reason.
func (s *ruleSet) addCodes(path string, m *matchers, r decision.Rule) {
	for i, c := range m.Codes {
		reason := orElse(m.Reason, decision.Reason(c))
		if c == "" {
			continue // reported
		}
		if !s.has(path+".reason") && codeForm.MatchString(string(c)) && !slices.Contains(reasons, string(reason)) {
			s.mismatch(itemOf(path+".codes", i), "a code that is a reason itself, or the key reason beside codes")
		}
		one := r
		one.Name, one.Reason, one.Codes = string(c), reason, []string{string(c)}
		s.rules, s.origins = append(s.rules, one), append(s.origins, origin{path, i})
	}
}

// codeForm is R3's; what has another is for the classifier to report.
var codeForm = regexp.MustCompile(`^[A-Z0-9]+(_[A-Z0-9]+)*$`)

// name reports a rule's name that is none, or another rule's.
func (s *ruleSet) name(path, name string) {
	if name == "" {
		return
	}
	if !nameForm.MatchString(name) {
		s.mismatch(path+".name", nameExpected)
	}
	if first, twice := s.names[name]; twice {
		s.mismatch(path+".name", fmt.Sprintf("a name that no other rule of the policy has (line %d has it)", s.line(first)))
		return
	}
	s.names[name] = path + ".name"
}

// list reports an empty list, and items that an earlier rule matches, or the same one.
func (s *ruleSet) list(path string, l matcherList, class decision.ErrorClassification) {
	if len(l.items) == 0 && s.isKind(path, yaml.SequenceNode) {
		s.problem(path, "an empty list", "at least one item, or no such key")
	}
	s.items += len(l.items)
	for i, item := range l.items {
		at := itemOf(path, i)
		if first, taken := s.taken(l.key, item, class); taken {
			s.mismatch(at, fmt.Sprintf("%s that is not matched already (%s on line %d does)", singular[l.key], first.path, s.line(first.path)))
			continue
		}
		for _, key := range keysOf(l.key, item) {
			if _, there := s.texts[key]; !there {
				s.texts[key] = standing{at, class}
			}
		}
	}
}

var singular = map[string]string{
	"codes": "a code", "httpStatuses": "a status", "tissFaults": "a fault", "tissCodes": "a code", "phrases": "a phrase", "words": "an entry", "patterns": "a pattern",
}

// taken tells where all that item matches is matched already.
func (s *ruleSet) taken(list, item string, class decision.ErrorClassification) (first standing, taken bool) {
	for _, key := range keysOf(list, item) {
		if first, taken = s.texts[key]; !taken {
			break
		}
	}
	if !taken { // a number is a status too, and is not to be of another class as such
		other := map[string]string{"codes": "httpStatuses", "httpStatuses": "codes"}[list]
		first, taken = s.texts[other+" "+item]
		taken = taken && first.class != class
	}
	return first, taken && item != ""
}

// keysOf are the keys of ruleSet.texts for one item: those of a hundred numbers for 5xx.
func keysOf(list, item string) []string {
	if hundred, ok := strings.CutSuffix(item, "xx"); ok && (list == "httpStatuses" || list == "tissCodes") && len(hundred) <= 2 {
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

// unreached reports what is called transient and matched by a permanent rule, which comes first (R2).
func (s *ruleSet) unreached(c *decision.Classifier) {
	for i := range s.rules {
		r := &s.rules[i]
		if r.Class != decision.Transient {
			continue
		}
		s.eachItem(i, func(list, at, item string) {
			if list == "words" || list == "patterns" || list == "httpStatuses" || list == "tissCodes" {
				return
			}
			match := c.Classify(strings.TrimSuffix(item, "*"), 0)
			if first, same := s.texts[keysOf(list, item)[0]]; match.Classification == decision.Permanent && (!same || first.path == at) {
				s.mismatch(at, "a transient text that no permanent rule matches ("+match.Name+" does, and comes first)")
			}
		})
	}
}

// eachError reports every item that cannot be compiled.
func (s *ruleSet) eachError() {
	for i := range s.rules {
		s.eachItem(i, func(list, at, item string) {
			one := decision.Rule{Class: decision.Transient}
			*map[string]*[]string{
				"codes": &one.Codes, "httpStatuses": &one.Statuses, "tissFaults": &one.TISSFaults,
				"tissCodes": &one.TISSCodes, "phrases": &one.Phrases, "words": &one.Words, "patterns": &one.Patterns,
			}[list] = []string{item}
			var wrong *decision.RuleError
			if _, err := decision.NewClassifier([]decision.Rule{one}); item != "" && errors.As(err, &wrong) {
				s.problem(at, quote(item), wrong.Expected)
			}
		})
	}
}

// eachItem calls do for everything that the i-th rule matches, with the key of its list and its path.
func (s *ruleSet) eachItem(i int, do func(list, path, item string)) {
	runtime.Gosched() // see yieldingReader
	r, from := &s.rules[i], s.origins[i]
	for _, l := range []matcherList{
		{"codes", r.Codes}, {"httpStatuses", r.Statuses}, {"tissFaults", r.TISSFaults},
		{"tissCodes", r.TISSCodes}, {"phrases", r.Phrases}, {"words", r.Words}, {"patterns", r.Patterns},
	} {
		for j, item := range l.items {
			if from.code != allCodes {
				j = from.code
			}
			do(l.key, itemOf(from.path+"."+l.key, j), item)
		}
	}
}
