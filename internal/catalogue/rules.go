package catalogue

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
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
	// origins of the rules in the file.
	origins []origin
	// names of rules, to their paths.
	names map[string]string
	// texts that rules match, each behind its list's key, to where they stand.
	texts map[string]standing
	// examples of the rules.
	cases []examples
	// items that rules match so far.
	items int
}

// origin is where a rule was written: at path, and there, where it was made of one code of several, the code-th.
type origin struct {
	path string
	code int
}

// examples are texts that rules of these names must match, and some that they must not.
type examples struct {
	path         string
	names        []string
	matches, not []string
}

// allCodes is an origin's code where the rule has its lists whole.
const allCodes = -1

type standing struct {
	path  string
	class decision.ErrorClassification
}

// matcherLists are the lists of what a rule matches: their keys, what one item is, and where a rule has them.
var matcherLists = []struct {
	key, singular string
	of            func(*classify.Rule) *[]string
}{
	{"codes", "a code", func(r *classify.Rule) *[]string { return &r.Codes }},
	{"httpStatuses", "a status", func(r *classify.Rule) *[]string { return &r.Statuses }},
	{"tissFaults", "a fault", func(r *classify.Rule) *[]string { return &r.TISSFaults }},
	{"tissCodes", "a code", func(r *classify.Rule) *[]string { return &r.TISSCodes }},
	{"phrases", "a phrase", func(r *classify.Rule) *[]string { return &r.Phrases }},
	{"refusals", "a word", func(r *classify.Rule) *[]string { return &r.Refusals }},
	{"approvals", "a word", func(r *classify.Rule) *[]string { return &r.Approvals }},
	{"things", "a thing", func(r *classify.Rule) *[]string { return &r.Things }},
	{"patterns", "a pattern", func(r *classify.Rule) *[]string { return &r.Patterns }},
}

// rules compiles a policy's rules.
func (b *builder) rules(path string, doc *policy) *classify.Classifier {
	s := &ruleSet{builder: b, names: make(map[string]string), texts: make(map[string]standing)}
	s.addAll(path, doc, false)
	s.addAll(path, doc, true)
	if b.patterns > maxPatterns || s.items > maxItems {
		b.problem(path, fmt.Sprintf("%d codes, phrases and the like, and with the policies before it %d patterns", s.items,
			b.patterns),
			fmt.Sprintf("at most %d of a policy and %d of a catalogue", maxItems, maxPatterns))
		return nil
	}
	words := classify.Vocabulary{}
	if v := doc.Vocabulary; v != nil {
		words = classify.Vocabulary(*v)
	}
	classifier, err := classify.New(s.rules, words)
	if err != nil {
		s.eachError(path, words)
		return nil
	}
	s.checkExamples(classifier)
	return classifier
}

// addAll adds the rules of a policy: first those of the file, then those that it extends, so that of one rank its own
// win.
func (s *ruleSet) addAll(path string, doc *policy, builtIn bool) {
	for i := range doc.Permanent {
		s.addPermanent(itemOf(path+".permanent", i), &doc.Permanent[i], classify.Signature, builtIn)
	}
	for i := range doc.Transient {
		r, at := &doc.Transient[i], itemOf(path+".transient", i)
		if s.ofBuiltInRule(at) == builtIn {
			s.add(at, &r.matchers, classify.Rule{Class: decision.Transient, Hint: r.Hint})
		}
	}
	for i := range doc.PresumedPermanent {
		s.addPermanent(itemOf(path+".presumedPermanent", i), &doc.PresumedPermanent[i], classify.Refusal, builtIn)
	}
}

func (s *ruleSet) addPermanent(path string, r *permanentRule, rank classify.Rank, builtIn bool) {
	if s.ofBuiltInRule(path) == builtIn {
		s.team(path+".team", r.Team)
		s.add(path, &r.matchers,
			classify.Rule{Class: decision.Permanent, Rank: rank, Team: decision.Team(r.Team), Hint: r.Hint})
	}
}

// add makes rules of what a document's rule matches: one, or, where it has nothing but codes and no name, one for
// each code.
func (s *ruleSet) add(path string, m *matchers, r classify.Rule) {
	s.patterns += len(m.Patterns)
	if m.Rank != 0 {
		r.Rank = classify.Rank(m.Rank)
	}
	r.Codes, r.Statuses, r.TISSCodes = textsOf(m.Codes), textsOf(m.HTTPStatuses), textsOf(m.TISSCodes)
	r.TISSFaults, r.Phrases, r.Patterns = m.TISSFaults, m.Phrases, m.Patterns
	r.Refusals, r.Approvals, r.Things = m.Refusals, m.Approvals, m.Things
	var keys, given []string
	for _, l := range matcherLists {
		if keys = append(keys, l.key); s.has(path + "." + l.key) {
			given = append(given, l.key)
		}
	}
	if len(given) == 0 && s.places[path].node.Kind == yaml.MappingNode { // what is no mapping was reported
		s.problem(path, "a rule that matches nothing", "at least one of "+strings.Join(keys, ", "))
	}
	s.name(path, m.Name)
	s.cases = append(s.cases, examples{path, append(textsOf(m.Codes), m.Name), m.Matches, m.Not})
	for _, l := range matcherLists {
		s.list(path, l.key, l.singular, *l.of(&r), r.Class)
	}
	if !s.has(path+".name") && !slices.ContainsFunc(given, func(key string) bool { return key != "codes" }) {
		s.addCodes(path, m, r)
		return
	}
	for _, key := range []string{"name", "reason"} {
		if at := path + "." + key; !s.has(at) {
			s.problem(at, "nothing", "this key, as the rule is more than codes that are reasons themselves")
		}
	}
	r.Name, r.Reason, r.Matches, r.Not = m.Name, m.Reason, m.Matches, m.Not
	s.rules, s.origins = append(s.rules, r), append(s.origins, origin{path, allCodes})
}

// addCodes makes a rule of each code, which is its own name and, unless there is another, its reason.
func (s *ruleSet) addCodes(path string, m *matchers, r classify.Rule) {
	for i, c := range m.Codes {
		reason := cmp.Or(m.Reason, decision.Reason(c))
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

// list reports items of a rule's list that an earlier rule matches, or the same one.
func (s *ruleSet) list(path, list, singular string, items []string, class decision.ErrorClassification) {
	s.items += len(items)
	for i, item := range items {
		at := itemOf(path+"."+list, i)
		if first, taken := s.taken(list, item, class); taken {
			s.mismatch(at, fmt.Sprintf("%s that is not matched already (%s on line %d does)", singular, first.path,
				s.line(first.path)))
			continue
		}
		for _, key := range keysOf(list, item) {
			if _, there := s.texts[key]; !there {
				s.texts[key] = standing{at, class}
			}
		}
	}
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

// keysOf returns the keys of ruleSet.texts for one item: those of a hundred numbers for 5xx.
func keysOf(list, item string) []string {
	if hundred, ok := strings.CutSuffix(item, "xx"); ok && (list == "httpStatuses" || list == "tissCodes") &&
		len(hundred) <= 2 {
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
func (s *ruleSet) checkExamples(c *classify.Classifier) {
	for _, rule := range s.cases {
		for j, text := range rule.matches {
			if m := c.Classify(text, 0); m.Name == "" || !slices.Contains(rule.names, m.Name) {
				s.mismatch(itemOf(rule.path+".matches", j), "a text that the rule matches ("+cmp.Or(m.Name, "no rule")+" does)")
			}
		}
		for j, text := range rule.not {
			if m := c.Classify(text, 0); m.Name != "" && slices.Contains(rule.names, m.Name) {
				s.mismatch(itemOf(rule.path+".not", j), "a text that the rule does not match ("+quote(m.Text)+" does)")
			}
		}
	}
}

// eachError reports every rank, item and word of a policy's vocabulary that cannot be compiled.
func (s *ruleSet) eachError(path string, words classify.Vocabulary) {
	report := func(at string, one []classify.Rule, v classify.Vocabulary) {
		var wrong *classify.RuleError
		if _, err := classify.New(one, v); errors.As(err, &wrong) {
			s.problem(at, wrong.Found, wrong.Expected)
		}
	}
	for i := range s.rules {
		r, from := &s.rules[i], s.origins[i]
		report(from.path+".rank", []classify.Rule{{Class: r.Class, Rank: r.Rank}}, classify.Vocabulary{})
		for _, l := range matcherLists {
			for j, item := range *l.of(r) {
				one := classify.Rule{Class: decision.Transient}
				if *l.of(&one) = []string{item}; item != "" {
					report(itemOf(from.path+"."+l.key, max(j, from.code)), []classify.Rule{one}, classify.Vocabulary{})
				}
			}
		}
	}
	lists := map[string][]string{"refusals": words.Refusals, "approvals": words.Approvals, "bystanders": words.Bystanders}
	for key, list := range lists {
		for j, word := range list {
			report(itemOf(path+".vocabulary."+key, j), nil, classify.Vocabulary{Refusals: []string{word}})
		}
	}
}
