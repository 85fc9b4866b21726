package catalogue

import (
	"cmp"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
)

// builder makes policies of a document, and reports what contradicts itself in it. Zero values are what is absent or
// was reported by the reader: it does not report them again.
type builder struct {
	*reader
	catalogue *Catalogue
	// teams by name; named are those that a policy names.
	teams []string
	named map[decision.Team]bool
	// patterns of all policies so far.
	patterns int
}

const (
	maxPolicies = 200
	// maxPatterns of a catalogue: each may have thousands of steps.
	maxPatterns = 1000
	// maxItems that the rules of one policy match, patterns included.
	maxItems = 10_000
)

func (b *builder) build(doc *document) {
	b.catalogue.Teams = make(map[decision.Team]Team, len(doc.Teams))
	for name, t := range doc.Teams {
		b.catalogue.Teams[decision.Team(name)] = t
		b.waysOf(join("teams", name), t.Email)
		b.teams = append(b.teams, name)
	}
	slices.Sort(b.teams)
	b.named = make(map[decision.Team]bool)
	b.catalogue.Policies = make(decision.Policies, len(doc.Policies))
	if len(doc.Policies) > maxPolicies {
		b.problem("policies", fmt.Sprintf("%d policies", len(doc.Policies)), fmt.Sprintf("at most %d", maxPolicies))
		return
	}
	for _, name := range keysOf(b.at("policies")) {
		p := doc.Policies[name]
		b.catalogue.Policies[name] = b.policy(name, &p)
	}
	b.destinations(doc)
	b.refuseIdleTeams()
}

// waysOf reports what is wrong with the ways that a team is told by.
func (b *builder) waysOf(path string, email []string) {
	if at := path + ".digest"; b.has(at) && !b.has(path+".email") && !b.has(path+".webhook") {
		b.problem(at, "the digest of a team that is told by no way", "email or webhook beside it")
	}
	for i, address := range email {
		same := func(other string) bool { return strings.EqualFold(other, address) }
		if address != "" && slices.ContainsFunc(email[:i], same) {
			b.problem(itemOf(path+".email", i), quote(address)+" again", "each once")
		}
	}
}

func (b *builder) policy(name string, doc *policy) *decision.Policy {
	path := join("policies", name)
	p := &decision.Policy{
		Name: name, Description: doc.Description, Catalogue: b.catalogue.Version,
		IDVariable: doc.ID.Variable, ErrorVariable: doc.Error.Variable, HTTPStatusVariable: doc.HTTPStatus.Variable,
		Own: doc.JobRetryPolicy, Destination: doc.Destination, Stretch: doc.Stretch, InvalidID: decision.InvalidID,
		MaxRetries: doc.MaxRetries, TotalLimit: time.Duration(doc.TotalLimit), Salt: doc.Salt,
		EmptyError:   cmp.Or(doc.EmptyError, decision.RejectEmptyError),
		UnknownError: cmp.Or(doc.UnknownError, decision.RetryUnknown),
		LimitTeam:    doc.LimitTeam,
	}
	if name == decision.DefaultPolicy {
		p.InvalidID = decision.InvalidClaimID
	}
	if doc.Stretch && doc.Destination == nil {
		b.problem(path+".stretch", "a policy without a destination", "destination beside it, which tells what is waited for")
	}
	for _, name := range keysOf(b.at(path + ".context")) {
		field := doc.Context[name]
		field.Variable, field.Type = name, cmp.Or(field.Type, decision.ContextText)
		p.Context = append(p.Context, field)
	}
	p.IDPattern = b.idPattern(path+".id.pattern", doc.ID.Pattern)
	b.variables(path, doc)
	b.team(path+".limitTeam", doc.LimitTeam)
	p.Backoff = b.backoff(path+".backoff", &doc.Backoff)
	if shortest := p.Backoff.Min; p.TotalLimit > 0 && p.TotalLimit < shortest {
		b.mismatch(path+".totalLimit",
			fmt.Sprintf("at least backoff.min (%s), or no retry is ever scheduled", duration(shortest)))
	}
	p.Rules = b.rules(path, doc)
	if p.PresumedRetries = doc.PresumedRetries; !b.has(path + ".presumedRetries") {
		p.PresumedRetries = min(1, max(0, p.MaxRetries))
	}
	if p.PresumedRetries < 0 || p.PresumedRetries > max(0, p.MaxRetries) {
		b.mismatch(path+".presumedRetries", fmt.Sprintf("a whole number from 0 to maxRetries (%d)", p.MaxRetries))
	}
	return p
}

// team reports a name that is none of the catalogue's teams.
func (b *builder) team(path string, name decision.Team) {
	b.named[name] = true
	if _, ok := b.catalogue.Teams[name]; !ok && name != "" {
		b.mismatch(path, "one of the teams "+oneOf(string(name), b.teams))
	}
}

// variables reports a variable that is read as two things.
func (b *builder) variables(path string, doc *policy) {
	taken := map[string]string{
		decision.RetryCountVariable:     "every policy reads as the count of retries",
		decision.LastSubmissionVariable: "every policy reads as the time of the last try",
	}
	own := cmp.Or(doc.JobRetryPolicy, new(decision.OwnVariables))
	destination := cmp.Or(doc.Destination, new(decision.DestinationVariable))
	for _, v := range []struct{ field, name string }{
		{"id.variable", doc.ID.Variable}, {"error.variable", doc.Error.Variable},
		{"httpStatus.variable", doc.HTTPStatus.Variable}, {"destination.variable", destination.Variable},
		{"jobRetryPolicy.maxAttemptsVariable", own.MaxAttempts}, {"jobRetryPolicy.delayVariable", own.Delay},
		{"jobRetryPolicy.nonRetryableVariable", own.NonRetryable},
	} {
		if by, twice := taken[v.name]; twice {
			b.mismatch(path+"."+v.field, "a variable other than "+v.name+", which "+by)
		} else if v.name != "" {
			taken[v.name] = v.field + " reads already"
		}
	}
}

// idPattern compiles the pattern of ids. RE2 matches in linear time, and ids are short: * and + are allowed.
func (b *builder) idPattern(path, text string) *regexp.Regexp {
	if text == "" {
		return nil
	}
	const maxProgram = 2000
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		b.problem(path, quote(text), "a regular expression as RE2 reads them ("+err.Error()+")")
		return nil
	}
	if !begins(tree) || !ends(tree) {
		b.problem(path, quote(text), "an anchored pattern, from ^ to $, so that the whole id must match")
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		b.problem(path, quote(text), fmt.Sprintf("a pattern of at most %d steps", maxProgram))
		return nil
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		b.problem(path, quote(text), "a regular expression as RE2 reads them ("+err.Error()+")")
	}
	return pattern
}

// begins reports whether everything that re matches begins where the text does.
func begins(re *syntax.Regexp) bool {
	return anchored(re, syntax.OpBeginText, func(subs []*syntax.Regexp) *syntax.Regexp { return subs[0] })
}

// ends reports whether everything that re matches ends where the text does.
func ends(re *syntax.Regexp) bool {
	return anchored(re, syntax.OpEndText, func(subs []*syntax.Regexp) *syntax.Regexp { return subs[len(subs)-1] })
}

func anchored(re *syntax.Regexp, op syntax.Op, outermost func([]*syntax.Regexp) *syntax.Regexp) bool {
	switch re.Op {
	case op:
		return true
	case syntax.OpConcat, syntax.OpCapture:
		return anchored(outermost(re.Sub), op, outermost)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !anchored(sub, op, outermost) })
	}
	return false
}
