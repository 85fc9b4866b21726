package catalogue

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"retry-worker/internal/decision"
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
