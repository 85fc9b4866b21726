// Package classify says what an error text is evidence of. It is pure.
//
// Evidence has a rank (R25), and the strongest decides: a code that the specification names, TISS in its own place, a
// transient code, a signature of known software, words of refusal, words of a passing fault. A negation before a phrase
// cancels it. A refusal needs the thing that is refused, in the same clause. It yields to a lock, a time limit or a
// request to try again later.
package classify

import (
	"slices"

	"retry-worker/internal/text"
)

// Class says how an error is treated (R4).
type Class string

// The classes.
const (
	Transient Class = "TRANSIENT"
	Permanent Class = "PERMANENT"
	Unknown   Class = "UNKNOWN"
)

// Rank is the strength of evidence, the strongest first (R25). In a rule the zero value means Signature.
type Rank int

// The ranks.
const (
	SpecifiedPermanent Rank = 1 + iota
	TISS
	SpecifiedTransient
	Signature
	Refusal
	PassingFault
	Nothing
)

type (
	// Reason is the cause of a decision, from a closed set.
	Reason string
	// Team is the team that must act on a dead letter (R21).
	Team string
)

// Rule says what a piece of evidence means, and what to do about it.
type Rule struct {
	// Name stands in matchedRule, except that a code stands there itself.
	Name  string
	Class Class
	// Rank of the evidence. A permanent rule of rank Refusal is a presumption.
	Rank   Rank
	Reason Reason
	// Team must act; empty if the class is Transient.
	Team Team
	// Hint tells people what to correct; may be empty.
	Hint text.Translated

	// Codes are upper-case letters, digits and single underscores. A code of digits matches whole numbers of the
	// original message; any other matches the message's normal form (R3).
	Codes []string
	// Statuses are HTTP statuses ("404") or a hundred of them ("5xx"). They match the status beside the text; if there
	// is none, a number in the text that stands like a status.
	Statuses []string `yaml:"httpStatuses"`
	// TISSFaults are names of st_tissFault, such as LoginInvalido, as whole words.
	TISSFaults []string `yaml:"tissFaults"`
	// TISSCodes are messages and denials of table 38 ("1308") or a group of them ("10xx"). They match only numbers that
	// the text marks as such.
	TISSCodes []string `yaml:"tissCodes"`
	// Phrases match whole words, regardless of case, accents and punctuation; a word may end in * for any ending.
	Phrases []string
	// Refusals are words such as duplicado that mean this rule, whatever thing is refused.
	Refusals []string
	// Approvals are words such as autorizado that, negated, are a refusal of anything.
	Approvals []string
	// Things are what may be refused. The rule matches if a refusal refers to one.
	Things []string
	// Patterns are bounded regular expressions (RE2) on the text in lower case without accents, with single spaces.
	Patterns []string

	// Matches are examples that the rule must match; Not are similar texts that it must not match.
	Matches, Not []string
}

// List is one of the lists of a rule or of a Vocabulary.
type List struct {
	// Key is its key in a catalogue.
	Key   string
	Items []string
	role  role
}

// Lists returns all lists of a rule, including the empty ones.
func (r *Rule) Lists() []List {
	return []List{{"codes", r.Codes, codeRole}, {"httpStatuses", r.Statuses, statusRole},
		{"tissFaults", r.TISSFaults, nameRole}, {"tissCodes", r.TISSCodes, tissRole},
		{"phrases", r.Phrases, phraseRole}, {"refusals", r.Refusals, refusalRole}, {"approvals", r.Approvals, approvalRole},
		{"things", r.Things, thingRole}, {"patterns", r.Patterns, patternRole}}
}

// Vocabulary holds the words of refusal that all rules share.
type Vocabulary struct {
	// Refusals are words such as invalido, which need a thing that is refused.
	Refusals []string
	// Approvals are words such as encontrado, which are refusals if negated.
	Approvals []string
	// Bystanders are things such as a connection, whose refusal says nothing of the claim.
	Bystanders []string
}

// Lists returns all lists of a vocabulary.
func (v *Vocabulary) Lists() []List {
	return []List{{"refusals", v.Refusals, refusalRole}, {"approvals", v.Approvals, approvalRole},
		{"bystanders", v.Bystanders, thingRole}}
}

// Presumed reports whether a match by the rule is a presumption. The console's template of policies asks it.
func (r *Rule) Presumed() bool { return r.Class == Permanent && r.Rank == Refusal }

// Match is the result of a classification: the rule, or Unknown with an empty Name.
type Match struct {
	Class Class
	Rank  Rank
	// Name is the matching code, or the name of the matching rule.
	Name   string
	Reason Reason
	Team   Team
	Hint   string
	// Text is the matching part of the message; it may hold personal data.
	Text string
}

// Presumed reports whether the match is a presumption, to be retried before it is believed.
func (m *Match) Presumed() bool { return m.Class == Permanent && m.Rank == Refusal }

// Found is a piece of evidence, for people.
type Found struct {
	Match
	// Lost says why it does not count; empty for the deciding evidence.
	Lost    string
	matcher int
}

// NoMatch is the Match of an error that no rule knows.
var NoMatch = Match{Class: Unknown, Rank: Nothing, Reason: "UNKNOWN"}

// Classifier weighs the evidence in error texts. It is safe for concurrent use; a nil one knows no rule.
type Classifier struct {
	rules []Rule
	// matchers holds a Match without Text for each way in which a rule may match, the strongest first.
	matchers []Match
	// needles are searched in the message as read, codes in the original (R3).
	needles, codes needles
	numbers        map[numberKey]int // their matchers
	patterns       []pattern
}

// Rules returns the classifier's rules, the strongest first.
func (c *Classifier) Rules() []Rule {
	if c == nil {
		return nil
	}
	return slices.Clone(c.rules)
}

// Named returns the rule that a Match names, by its own name or by one of its codes; the zero Rule if there is none.
func (c *Classifier) Named(match string) Rule {
	if c != nil {
		for i := range c.rules {
			if r := &c.rules[i]; r.Name == match || slices.Contains(r.Codes, match) {
				return *r
			}
		}
	}
	return Rule{}
}

// Classify is analyzeError of RN-BIL-005 §12.4. message is the original text; status is the HTTP status beside it, 0 if
// there is none.
func (c *Classifier) Classify(message string, status int) Match {
	m, _ := c.Read(message, status)
	return m
}

// Read returns what Classify does, and what else the message tells.
func (c *Classifier) Read(message string, status int) (Match, Said) {
	if c == nil {
		return NoMatch, Said{}
	}
	s := c.search(message, status)
	defer s.free()
	return s.strongest().Match, s.said
}

// Explain returns all the evidence in a message, the deciding one first, the others with why they lost.
func (c *Classifier) Explain(message string, status int) []Found {
	if c == nil {
		return nil
	}
	s := c.search(message, status)
	defer s.free()
	all := make([]Found, 0, len(s.found))
	for i, f := range s.found[1:] {
		switch {
		case f.Lost != "":
		case i+1 == s.best:
			all = slices.Insert(all, 0, f)
			continue
		case f.Rank > s.strongest().Rank:
			f.Lost = "weaker than " + s.strongest().Rank.String()
		default:
			f.Lost = "an earlier rule of the same rank matched"
		}
		all = append(all, f)
	}
	return all
}

var rankNames = [...]string{"", "a specified permanent code", "TISS in its own place", "a specified transient code",
	"a signature of known software", "words of refusal", "words of a passing fault", "nothing known"}

func (r Rank) String() string { return rankNames[r] }
