package catalogue

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for containers without a zone database

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/calendar"
	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/smallfile"
	"retry-worker/internal/text"
)

// builder makes policies from a document and reports contradictions. Zero values are absent, or already reported by the
// reader.
type builder struct {
	*reader
	catalogue *Catalogue
	// teams holds the teams' names; named, those that a policy names.
	teams []string
	named map[decision.Team]bool
}

func (b *builder) build(doc *document) {
	b.catalogue.Teams = make(map[decision.Team]Team, len(doc.Teams))
	for name, t := range doc.Teams {
		b.catalogue.Teams[decision.Team(name)] = t
		b.teams = append(b.teams, name)
	}
	slices.Sort(b.teams)
	b.named = make(map[decision.Team]bool)
	b.catalogue.Policies = make(decision.Policies, len(doc.Policies))
	for name, p := range doc.Policies {
		b.catalogue.Policies[name] = b.policy(name, &p)
	}
	b.destinations(doc)
	b.refuseIdleTeams()
}

func (b *builder) policy(name string, doc *policy) *decision.Policy {
	path := join("policies", name)
	made := doc.Policy
	p := &made
	p.Name, p.Catalogue, p.InvalidID = name, b.catalogue.Version, decision.InvalidID
	p.IDVariable, p.ErrorVariable, p.HTTPStatusVariable = doc.ID.Variable, doc.Error.Variable, doc.HTTPStatus.Variable
	p.EmptyError = cmp.Or(p.EmptyError, decision.RejectEmptyError)
	p.UnknownError = cmp.Or(p.UnknownError, decision.RetryUnknown)
	if name == decision.DefaultPolicy {
		p.InvalidID = decision.InvalidClaimID
	}
	for key := range slices.Chunk(b.at(path+".context").Content, 2) { // in the order of the file
		name := key[0].Value
		field := doc.Context[name]
		field.Variable, field.Type = name, cmp.Or(field.Type, decision.ContextText)
		p.Context = append(p.Context, field)
	}
	p.IDPattern = b.idPattern(path+".id.pattern", doc.ID.Pattern)
	b.team(path+".limitTeam", p.LimitTeam)
	p.Backoff = b.backoff(path+".backoff", &doc.Backoff)
	if shortest := p.Backoff.Min; p.TotalLimit > 0 && p.TotalLimit < shortest {
		b.mismatch(path+".totalLimit",
			fmt.Sprintf("at least backoff.min (%s), or no retry is ever scheduled", text.Duration(shortest)))
	}
	p.Rules = b.rules(path, doc)
	if !b.has(path + ".presumedRetries") {
		p.PresumedRetries = min(1, max(0, p.MaxRetries))
	}
	if p.PresumedRetries < 0 || p.PresumedRetries > max(0, p.MaxRetries) {
		b.mismatch(path+".presumedRetries", fmt.Sprintf("a whole number from 0 to maxRetries (%d)", p.MaxRetries))
	}
	return p
}

// team reports a name that is not one of the catalogue's teams.
func (b *builder) team(path string, name decision.Team) {
	b.named[name] = true
	switch _, ok := b.catalogue.Teams[name]; {
	case ok || name == "":
	case len(b.teams) == 0:
		b.mismatch(path, "one of the teams, of which there are none")
	default:
		b.mismatch(path, "one of the teams "+oneOf(string(name), b.teams))
	}
}

// idPattern compiles the pattern of ids. It may contain * and +: RE2 takes linear time, and ids are short.
func (b *builder) idPattern(path, s string) *regexp.Regexp {
	pattern, err := regexp.Compile(s)
	if err != nil {
		b.mismatch(path, "a regular expression as RE2 reads them ("+err.Error()+")")
		return nil
	}
	pattern.Longest() // prefer the whole id to a shorter alternative
	return pattern
}

// defaultDestination names the settings that every other destination inherits.
const defaultDestination = "default"

// destinations makes the settings of each destination: its own, then those of default, then the built-in ones. It gives
// each policy its destinations, or a calendar of its own.
func (b *builder) destinations(doc *document) {
	all := &b.catalogue.Destinations
	all.Named = make(map[string]destination.Settings, len(doc.Destinations))
	all.Others = b.settings(defaultDestination, doc.Destinations[defaultDestination], destination.Defaults())
	for _, name := range slices.Sorted(maps.Keys(doc.Destinations)) {
		if name != defaultDestination {
			all.Named[name] = b.settings(name, doc.Destinations[name], all.Others)
		}
	}
	for name, p := range b.catalogue.Policies {
		if d := p.Destination; d != nil {
			all.Named[d.Default] = all.Of(d.Default)
			p.Destinations = *all
		} else if own := doc.Policies[name].Calendar; own != nil {
			p.Destinations.Others = destination.Defaults()
			p.Destinations.Others.Calendar = b.calendar(join("policies", name)+".calendar", own)
		}
	}
}

// settings returns the settings of a destination, given those that it inherits.
func (b *builder) settings(name string, own yaml.Node, inherited destination.Settings) destination.Settings {
	path := join("destinations", name)
	s := destinationSettings{Settings: inherited}
	s.Label = text.Translated{}
	if err := recovered(func() error { return own.Decode(&s) }); err != nil && len(b.problems) == 0 {
		b.problem(path, "what cannot be read ("+oneSpace(err)+")", "a destination")
	}
	if s.Own != nil {
		s.Calendar = b.calendar(path+".calendar", s.Own)
	}
	p := &s.Pace
	p.Limited = p.Limited || b.has(path+".pace.most")
	if at := path + ".pace.start"; b.has(at) && p.Start > p.Most {
		b.mismatch(at, fmt.Sprintf("at most most (%g/min)", p.Most))
	}
	p.Start = min(p.Start, p.Most) // start may be inherited
	return s.Settings
}

// kinds lists the keys of the kinds of backoff.
var kinds = []string{"exponential", "constant", "list"}

// delay is one raw delay of a backoff, and its path.
type delay struct {
	path string
	of   time.Duration
}

// backoff makes the rule of doc, with defaults, and reports contradictions.
func (b *builder) backoff(path string, doc *backoff) decision.BackoffRule {
	given := slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return !b.has(join(path, kind)) })
	if b.has(path) && len(given) != 1 {
		found := cmp.Or(strings.Join(given, " and "), "none")
		b.problem(path, found, "exactly one of "+strings.Join(kinds, ", "))
	}
	rule := doc.BackoffRule
	rule.Base, rule.Factor = doc.Constant, 1
	delays := []delay{{path + ".constant", rule.Base}}
	switch {
	case doc.Exponential != nil:
		rule.Base, rule.Factor = doc.Exponential.Base, doc.Exponential.Factor
		delays = []delay{{path + ".exponential.base", rule.Base}}
	case len(doc.List) > 0:
		rule.Base, delays = 0, nil
		for i, d := range doc.List {
			delays = append(delays, delay{itemOf(path+".list", i), d})
		}
	}
	b.bounds(path, &rule, delays, doc.Exponential != nil)
	return rule
}

// bounds sets the bounds that are not given, to the shortest and longest delay with jitter, and reports delays outside
// the given bounds. A growing backoff may begin below min, and has no default for max.
func (b *builder) bounds(path string, rule *decision.BackoffRule, delays []delay, grows bool) {
	byLength := func(x, y delay) int { return cmp.Compare(x.of, y.of) }
	if rule.Min == 0 {
		rule.Min = time.Duration(float64(slices.MinFunc(delays, byLength).of) * (1 - rule.Jitter))
	}
	if rule.Max == 0 && !grows {
		rule.Max = time.Duration(float64(slices.MaxFunc(delays, byLength).of) * (1 + rule.Jitter))
	}
	exact := rule.Precision()
	rule.Rounding = cmp.Or(rule.Rounding, exact)
	if at := path + ".rounding"; rule.Max > 0 && rule.Rounding > rule.Max && b.has(at) {
		b.mismatch(at, "at most the longest wait ("+text.Duration(rule.Max.Truncate(time.Millisecond))+")")
		return
	}
	for _, bound := range []struct {
		key string
		of  *time.Duration
	}{{".min", &rule.Min}, {".max", &rule.Max}, {".rounding", &rule.Rounding}} {
		switch {
		case !b.has(path+bound.key) && *bound.of > 0: // rounded like the delays
			*bound.of = max(bound.of.Round(rule.Rounding), time.Millisecond)
		case *bound.of%exact != 0: // R7
			b.mismatch(path+bound.key, "a multiple of "+text.Duration(exact)+
				", as finely as a policy with a min of a minute or more computes")
		}
	}
	shortest, longest := text.Duration(rule.Min), text.Duration(rule.Max)
	if rule.Max > 0 && rule.Min > rule.Max {
		at := path + ".min"
		if !b.has(at) {
			at = path + ".max"
		}
		b.mismatch(at, fmt.Sprintf("min ≤ max, where min is %s and max %s", shortest, longest))
		return
	}
	for _, d := range delays {
		if tooShort := b.has(path+".min") && d.of < rule.Min && !grows; d.of > 0 &&
			(tooShort || b.has(path+".max") && d.of > rule.Max) {
			b.mismatch(d.path, fmt.Sprintf("between min (%s) and max (%s)", shortest, longest))
		}
	}
}

// defaultZone is the zone of a calendar that names none.
const defaultZone = "America/Sao_Paulo"

// calendar makes the calendar of a destination, or of a policy.
func (b *builder) calendar(path string, doc *calendarSettings) *calendar.Calendar {
	name := cmp.Or(doc.Zone, defaultZone)
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		b.mismatch(path+".zone", "a name of the time zone database, such as "+defaultZone)
		return nil
	}
	c, err := calendar.New(zone, doc.Windows, b.holidays(path+".holidays", doc.Holidays))
	if never, ok := errors.AsType[calendar.NeverOpenError](err); ok {
		found, at := "holidays that leave no day open", path+".holidays"
		if int(never) < len(doc.Windows) {
			found, at = "a window that is never open ("+doc.Windows[never].String()+")", itemOf(path+".windows", int(never))
		}
		b.problem(at, found, "one that is open on some day")
	}
	return c
}

// holidays returns the holidays of sets and files. A file may also take some away.
func (b *builder) holidays(path string, names []string) []calendar.Holiday {
	all, cancelled := []calendar.Holiday(nil), map[calendar.Day]bool{}
	for i, name := range names {
		at := itemOf(path, i)
		switch set := calendar.Holidays(name); {
		case name == "": // already reported
		case strings.HasSuffix(name, ".ics"):
			content, err := readBeside(b.source, name)
			var added, removed []calendar.Holiday
			if err == nil {
				added, removed, err = calendar.ReadICS(string(content))
			}
			if err != nil {
				b.problem(at, quote(name)+": "+err.Error(), "a file of whole days in the iCalendar format, beside this file")
			}
			all = append(all, added...)
			for _, h := range removed {
				cancelled[h.Day] = true
			}
		case set == nil:
			b.mismatch(at, "a file that ends in .ics, or one of "+oneOf(name, calendar.Sets()))
		default:
			all = append(all, set...)
		}
	}
	return slices.DeleteFunc(all, func(h calendar.Holiday) bool { return cancelled[h.Day] })
}

// readBeside reads a file in the catalogue's folder.
func readBeside(source, name string) ([]byte, error) {
	if !filepath.IsLocal(name) {
		return nil, errors.New("it is not beside this file")
	}
	return smallfile.Read(filepath.Join(filepath.Dir(source), name), maxBytes)
}

// fileName matches the names of holiday files in a catalogue.
var fileName = regexp.MustCompile(`[^\s\[\],"'#]+\.ics\b`)

// withFiles returns content, followed by comments with the checksums of the holiday files that it names. So a changed
// holiday file makes another catalogue.
func withFiles(source string, content []byte) []byte {
	names := make(map[string]bool)
	for _, name := range fileName.FindAll(content, -1) {
		names[string(name)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if file, err := readBeside(source, name); err == nil {
			content = fmt.Appendf(content, "\n# %s: %.6x", name, sha256.Sum256(file))
		}
	}
	return content
}

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
