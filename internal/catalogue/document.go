package catalogue

import (
	"retry-worker/internal/calendar"
	"retry-worker/internal/decision"
)

// The types of this file are the catalogue as people write it. The reader follows them by reflection, and the JSON
// Schema is made of them: the comments of their fields are the help that editors show, a key without omitempty must
// be there, and the reader holds numbers and lists to the limits of the jsonschema tags.

// A catalogue of retry policies.
type document struct {
	// built-in: the file holds only what differs from the program's own catalogue, and the rest follows that at each
	// upgrade. Its rules go before the built-in ones of the same rank, of which one with the same name is replaced; other
	// lists, and a backoff of another kind, are replaced whole. Without it the file is the whole catalogue.
	Extends string `json:"extends,omitempty" jsonschema:"enum=built-in"`
	// Version of the format; 1.
	Version int64 `json:"version" jsonschema:"enum=1"`
	// Teams that act on what is not retried any more, by name. Policies may name these and no others.
	Teams map[string]team `json:"teams" jsonschema:"minProperties=1"`
	// Policies by the names that tasks ask for in the header retryPolicy. tiss-submission must be there: it decides for
	// tasks that name none.
	Policies map[string]policy `json:"policies"`
	// Destinations by the names that processes give them. default is what every other one inherits; one that is not here
	// is treated as default says.
	Destinations map[string]destinationSettings `json:"destinations,omitempty"`
}

// Where claims are submitted: when it counts as down, how its status is asked for, and how fast claims go.
type destinationSettings struct {
	// What people call it, such as Unimed SP; without it, its name.
	Label string `json:"label,omitempty"`
	// When it counts as down: by a share of failures, or by five in a row, whichever comes first.
	OpensAt *opensAt `json:"opensAt,omitempty"`
	// How its status is asked for while it is not known to be up.
	Probe *probe `json:"probe,omitempty"`
	// How many claims may go in a minute.
	Pace *pace `json:"pace,omitempty"`
	// When claims can be sent. Without it, at any time.
	Calendar *calendarSettings `json:"calendar,omitempty"`
}

// When claims can be sent: in one of the windows, and not on a holiday.
type calendarSettings struct {
	// Time zone whose clock the windows go by; without it America/Sao_Paulo.
	Zone string `json:"zone,omitempty"`
	// Windows, any of which may be open; without them, all day.
	Windows []window `json:"windows,omitempty" jsonschema:"minItems=1,maxItems=20"`
	// Sets of holidays, such as BR, BR-SP or BR-BANKS, and files of holidays (.ics) beside this file; without them none.
	Holidays []string `json:"holidays,omitempty" jsonschema:"minItems=1,maxItems=20"`
}

// A time that comes again. What is not said restricts nothing.
type window struct {
	// Days of the month, such as 1-5.
	Days calendar.Days `json:"days,omitempty"`
	// Business days of the month, such as 1-2: Mondays to Fridays that are no holidays.
	BusinessDays calendar.Days `json:"businessDays,omitempty"`
	// Days of the week, such as mon-fri.
	Weekdays calendar.Weekdays `json:"weekdays,omitempty"`
	// Hours of the day, such as 08:00-18:00; 22:00-04:00 ends on the next day.
	Hours calendar.Hours `json:"hours,omitempty"`
}

// The share of failures at which a destination counts as down. Only failures that speak of the destination count:
// timeouts, connections, 503 and 504.
type opensAt struct {
	// Share of the claims let through that failed, above 0%; without it 50%.
	Failures percent `json:"failures,omitempty"`
	// How many claims must have been let through for it to count, 1 to 1000; without it 20.
	Of int64 `json:"of,omitempty" jsonschema:"minimum=1,maximum=1000"`
	// How far it looks back, 10s to 1h; without it 2m.
	Within duration `json:"within,omitempty"`
}

// How the status of a destination is asked for.
type probe struct {
	// How often, 1m to 15m; without it 5m.
	Every duration `json:"every,omitempty"`
	// Address that is asked (GET, no redirects). Without it, a claim is sent ahead.
	URL webhookURL `json:"url,omitempty"`
	// HTTP statuses that show that the destination works; without them 200 and 405.
	Expect []int64 `json:"expect,omitempty" jsonschema:"minItems=1,maxItems=20,uniqueItems=true"`
}

// How many claims may go in a minute, and how that number grows after an outage.
type pace struct {
	// Claims a minute that a ramp begins with; without it 1.
	Start perMinute `json:"start,omitempty"`
	// Claims a minute at most, such as 60/min, up to 60000; without it 60/min after an outage, and no limit while it is up.
	Most perMinute `json:"most,omitempty"`
	// What the pace is multiplied by, and how often, while all goes well; without it x2 every 15s.
	Step growth `json:"step,omitempty"`
	// What a RATE_LIMIT multiplies the pace by, x0.1 to x0.9; without it x0.5.
	OnRateLimit factor `json:"onRateLimit,omitempty"`
}

// A team that acts on dead letters.
type team struct {
	// What the team does, for people.
	Description string `json:"description,omitempty"`
	// Addresses that are told by e-mail of new dead letters of the team, at most 50. The worker needs
	// RETRY_WORKER_SMTP_URL for it.
	Email []emailAddress `json:"email,omitempty" jsonschema:"minItems=1,maxItems=50,uniqueItems=true"`
	// Receiver that is told of them by HTTP.
	Webhook *webhook `json:"webhook,omitempty"`
	// Whether it gets a review each day at RETRY_WORKER_DIGEST_TIME, by all of its ways: what is open, what of that is due
	// within a day, and the figures, on Mondays with those of the week.
	Digest bool `json:"digest,omitempty"`
}

// A receiver of webhooks, signed as Standard Webhooks say.
type webhook struct {
	// Address that is posted to, without user, password and fragment. Redirects are not followed; addresses that are not
	// public must be allowed by RETRY_WORKER_WEBHOOK_ALLOW.
	URL webhookURL `json:"url"`
	// File that holds the secret to sign with, whsec_ and base64 of 24 to 64 bytes. It is read for each message.
	SecretFile string `json:"secretFile"`
}

// A policy: how the failures of one kind of work are retried.
type policy struct {
	// What the policy is for, for people.
	Description string `json:"description,omitempty"`
	// The process variable that identifies what is retried.
	ID identity `json:"id"`
	// The process variable that holds the error text.
	Error variable `json:"error"`
	// The process variable that may hold the HTTP status of the failure, a whole number from 100 to 599. Without it,
	// statuses are looked for in the error text only.
	HTTPStatus *variable `json:"httpStatus,omitempty"`
	// The process variables in which a job may bring a retry policy of its own.
	JobRetryPolicy *jobRetryPolicy `json:"jobRetryPolicy,omitempty"`
	// How often it is tried again after the first try, 0 to 1000.
	MaxRetries int64 `json:"maxRetries" jsonschema:"minimum=0,maximum=1000"`
	// How long to wait before each retry.
	Backoff backoff `json:"backoff"`
	// No retry is scheduled later than this after the first failure. Without it there is no such limit.
	TotalLimit duration `json:"totalLimit,omitempty"`
	// Makes the jitter differ from that of a policy of the same name elsewhere. Changing it changes every draw.
	Salt string `json:"salt,omitempty"`
	// What an error without text does: reject (an incident in the engine; the default) or assume-transient (a retry).
	EmptyError decision.EmptyError `json:"emptyError,omitempty"`
	// What an error that no rule knows does: retry (the default) or give-up (to the limitTeam).
	UnknownError decision.UnknownError `json:"unknownError,omitempty"`
	// How often an error is tried again that only words of refusal speak for (presumedPermanent), 0 to maxRetries. Without
	// it once.
	PresumedRetries int64 `json:"presumedRetries,omitempty" jsonschema:"minimum=0,maximum=1000"`
	// What the words of refusal are, for the rules that have things.
	Vocabulary *vocabulary `json:"vocabulary,omitempty"`
	// The team that acts when the retries, or the time, are used up.
	LimitTeam string `json:"limitTeam"`
	// Errors that no retry can heal. Of one rank they go before the transient ones, and the first before the others.
	Permanent []permanentRule `json:"permanent,omitempty"`
	// Errors that pass by themselves.
	Transient []transientRule `json:"transient,omitempty"`
	// Errors that words of refusal speak for: tried again presumedRetries times, permanent then.
	PresumedPermanent []permanentRule `json:"presumedPermanent,omitempty"`
	// Where its claims are submitted.
	Destination *destinationOf `json:"destination,omitempty"`
	// Moves nextRetryTime to when the destination is expected back, for processes without the gate. Without it, false.
	Stretch bool `json:"stretch,omitempty"`
	// Process variables that people see with a claim, and sort and search by, at most 8.
	Context map[variableName]contextField `json:"context,omitempty" jsonschema:"maxProperties=8"`
	// When retries can be made, of a policy without a destination. Without it, at any time.
	Calendar *calendarSettings `json:"calendar,omitempty"`
}

// What a process variable is to people.
type contextField struct {
	// What people call it.
	Label string `json:"label"`
	// What it holds: text (the default), number, money (1234.56 or 1.234,56) or time.
	Type decision.ContextType `json:"type,omitempty"`
}

// How a policy tells where a claim goes.
type destinationOf struct {
	// Name of the process variable with the destination's name.
	Variable variableName `json:"variable"`
	// The destination of claims that have no such variable.
	Default destinationName `json:"default"`
}

// Words of refusal. A refusal speaks of the nearest thing in its clause.
type vocabulary struct {
	// Words such as invalido, which refuse a thing.
	Refusals []string `json:"refusals,omitempty"`
	// Words such as encontrado, which refuse a thing behind a negation.
	Approvals []string `json:"approvals,omitempty"`
	// Things such as a connection: that one is refused says nothing of what was sent.
	Bystanders []string `json:"bystanders,omitempty"`
}

// The variable that identifies what is retried.
type identity struct {
	// Name of the process variable.
	Variable variableName `json:"variable"`
	// Regular expression (RE2) that the whole id must match, from ^ to $. An id that does not is rejected.
	Pattern string `json:"pattern"`
}

// A process variable.
type variable struct {
	// Name of the process variable.
	Variable variableName `json:"variable"`
}

// The variables of a job that brings its own retry policy.
type jobRetryPolicy struct {
	// Name of the variable with the number of attempts, the first one included. A job without it gets maxRetries.
	MaxAttemptsVariable variableName `json:"maxAttemptsVariable"`
	// Name of the variable with the delay between two attempts, an ISO 8601 duration or milliseconds. A job without it
	// gets the backoff.
	DelayVariable variableName `json:"delayVariable,omitempty"`
	// Name of the variable that is true where the error is final whatever the count says.
	NonRetryableVariable variableName `json:"nonRetryableVariable,omitempty"`
}

// The wait before each retry: exactly one of exponential, constant and list.
type backoff struct {
	// Grows by a factor from retry to retry.
	Exponential *exponential `json:"exponential,omitempty" jsonschema:"oneof_required=exponential"`
	// The same wait before every retry.
	Constant duration `json:"constant,omitempty" jsonschema:"oneof_required=constant"`
	// The wait before the first retry, the second, and so on; the last holds for all that follow.
	List []duration `json:"list,omitempty" jsonschema:"oneof_required=list,minItems=1"`
	// The shortest wait, after jitter and rounding. Without it, the shortest that the above can come to.
	Min duration `json:"min,omitempty"`
	// The longest wait, after jitter and rounding. Must be there for exponential; otherwise the longest that the above can
	// come to.
	Max duration `json:"max,omitempty"`
	// Draws each wait from this much around its nominal length, so that what failed together does not come again together.
	// Without it, none.
	Jitter percent `json:"jitter,omitempty"`
	// Rounds the wait to multiples of this. Without it, whole seconds where min is a minute or more, otherwise
	// milliseconds.
	Rounding duration `json:"rounding,omitempty"`
}

// A wait of base × factor^n before the retry n+1, at most max.
type exponential struct {
	// The wait before the first retry.
	Base duration `json:"base"`
	// What each wait is of the one before, 1 to 1000.
	Factor float64 `json:"factor" jsonschema:"minimum=1,maximum=1000"`
}

// An error that no retry can heal.
type permanentRule struct {
	matchers
	// The team that must act.
	Team string `json:"team"`
	// Tells the team what to correct.
	Hint string `json:"hint,omitempty"`
}

// An error that passes by itself.
type transientRule struct {
	matchers
	// Tells people what it means, should it not pass.
	Hint string `json:"hint,omitempty"`
}

// What a rule matches; one of the lists is enough.
type matchers struct {
	// Rank of the evidence, 1 to 6, the strongest first; without it 4, and in presumedPermanent 5.
	Rank int64 `json:"rank,omitempty" jsonschema:"minimum=1,maximum=6"`
	// Name that decisions and the audit show. Only a rule of nothing but codes may go without: its codes are their own
	// names.
	Name string `json:"name,omitempty"`
	// Codes as R3 has them, upper-case letters, digits and single underscores. They match anywhere in the text, whatever
	// its case and separators; a code of digits matches whole numbers.
	Codes []code `json:"codes,omitempty" jsonschema:"minItems=1"`
	// HTTP statuses, such as 404, or a hundred of them, such as 5xx. They match the policy's httpStatus variable or, where
	// that is absent, a number in the text that stands where a status stands.
	HTTPStatuses []status `json:"httpStatuses,omitempty" jsonschema:"minItems=1"`
	// Names of TISS faults, such as LoginInvalido, as whole words.
	TISSFaults []string `json:"tissFaults,omitempty" jsonschema:"minItems=1"`
	// Codes of TISS table 38, such as 1308, or a hundred of them, such as 10xx, where the text marks them as such.
	TISSCodes []tissCode `json:"tissCodes,omitempty" jsonschema:"minItems=1"`
	// Phrases that match without case, accents and punctuation, as whole words; the last may end in * for any ending.
	Phrases []string `json:"phrases,omitempty" jsonschema:"minItems=1"`
	// Words such as duplicado that mean this rule, whatever thing they are said of.
	Refusals []string `json:"refusals,omitempty" jsonschema:"minItems=1"`
	// Words such as autorizado that are a refusal behind a negation, whatever they are said of.
	Approvals []string `json:"approvals,omitempty" jsonschema:"minItems=1"`
	// What may be refused, such as carteira: the rule matches where one of the policy's words of refusal speaks of it.
	Things []string `json:"things,omitempty" jsonschema:"minItems=1"`
	// Regular expressions (RE2) on the text in lower case without accents, with single spaces: bounded ({0,40}, not * or
	// +).
	Patterns []string `json:"patterns,omitempty" jsonschema:"minItems=1"`
	// Reason in metrics, audit and console. Only codes that are reasons themselves may go without.
	Reason decision.Reason `json:"reason,omitempty"`
	// Texts that the rule must match, and none before it. The check of the catalogue tries them.
	Matches []string `json:"matches,omitempty"`
	// Texts that are near and that it must not match.
	Not []string `json:"not,omitempty"`
}
