package decision

import "strconv"

// Rule classifies the errors that one of its matchers finds, and says who must do what about them.
type Rule struct {
	// Name stands in matchedRule, but for codes, which stand there themselves.
	Name string
	// Class is Permanent or Transient.
	Class ErrorClassification
	// Presumed says of a permanent rule that its evidence is weak: it holds only where no other rule does.
	Presumed bool
	Reason   Reason
	// Team that must act; empty where the class is Transient.
	Team Team
	// Hint tells people what to correct; may be empty.
	Hint string

	// Codes are upper-case letters, digits and single underscores. One of digits only matches whole numbers of the
	// message as it came, any other its normalised text (R3).
	Codes []string
	// Statuses are HTTP statuses, "404", or a hundred of them, "5xx". They match the status that came beside the
	// text; without one, a number in the text that stands where a status stands.
	Statuses []string
	// TISSFaults are names of st_tissFault, such as LoginInvalido, as whole words.
	TISSFaults []string
	// TISSCodes are messages and denials of table 38, "1308", or a group of them, "10xx". They match where the text
	// marks a number as one.
	TISSCodes []string
	// Phrases match without case, accents and punctuation, as whole words; the last may end in * for any ending.
	Phrases []string
	// Words are entries such as "ja | already + recebid* | received": groups of words, joined by +, of each of which one
	// stands near the others, at most 8 words away, in any order. They are compared as phrases are; one group has
	// words of at least 4 letters only.
	Words []string
	// Patterns are bounded regular expressions (RE2) on the text in lower case without accents, with single spaces.
	Patterns []string
}

// RuleError says which rule is wrong and what about it.
type RuleError struct {
	// Rule is its index among those given.
	Rule int
	// Field is the rule's own field, such as Codes; Item the index in it, below 0 where the field is no list.
	Field string
	Item  int
	// Found and Expected are for people.
	Found, Expected string
}

func (e *RuleError) Error() string { return e.Found + ", expected " + e.Expected }

// refused is the error of one item, whose place the caller fills in.
func refused(item, expected string) *RuleError {
	return &RuleError{Found: strconv.Quote(item), Expected: expected}
}

// because says what is wrong with the item.
func (e *RuleError) because(found string) *RuleError {
	e.Found += " " + found
	return e
}

// Match is what classification found: the rule, or Unknown with an empty Name.
type Match struct {
	Classification ErrorClassification
	// Name is the code, or the name of the rule, that matched.
	Name   string
	Reason Reason
	Team   Team
	Hint   string
	// Text is what matched, as it stands in the message; it may hold personal data.
	Text string
}

// unknownError is the Match of what no rule knows.
var unknownError = Match{Classification: Unknown, Reason: ReasonUnknown}
