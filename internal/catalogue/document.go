package catalogue

import (
	"retry-worker/internal/calendar"
	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/text"
)

// The types of this file are the catalogue as people write it. What each key is for, and what it may hold, stands in
// catalogue.schema.json, which every file is held against before it is read into them.

type document struct {
	Teams        map[string]Team
	Policies     map[string]policy
	Destinations map[string]destinationSettings
}

type policy struct {
	Description       string
	ID                struct{ Variable, Pattern string }
	Error             variable
	HTTPStatus        variable               `yaml:"httpStatus"`
	JobRetryPolicy    *decision.OwnVariables `yaml:"jobRetryPolicy"`
	MaxRetries        int64                  `yaml:"maxRetries"`
	Backoff           backoff
	TotalLimit        duration `yaml:"totalLimit"`
	Salt              string
	EmptyError        decision.EmptyError   `yaml:"emptyError"`
	UnknownError      decision.UnknownError `yaml:"unknownError"`
	PresumedRetries   int64                 `yaml:"presumedRetries"`
	Vocabulary        classify.Vocabulary
	LimitTeam         decision.Team `yaml:"limitTeam"`
	Permanent         []classify.Rule
	Transient         []classify.Rule
	PresumedPermanent []classify.Rule `yaml:"presumedPermanent"`
	Destination       *decision.DestinationVariable
	Stretch           bool
	Context           map[string]decision.ContextField
	Calendar          *calendarSettings
}

type variable struct{ Variable string }

type backoff struct {
	Exponential *struct {
		Base   duration
		Factor float64
	}
	Constant duration
	List     []duration
	Min      duration
	Max      duration
	Jitter   figure
	Rounding duration
}

// destinationSettings are those of one destination; what is absent, and so zero, is inherited.
type destinationSettings struct {
	Label   text.Translated
	OpensAt struct {
		Failures figure
		Of       int
		Within   duration
	} `yaml:"opensAt"`
	Probe struct {
		Every  duration
		URL    string
		Expect []int
	}
	Pace struct {
		Start, Most figure
		Step        growth
		OnRateLimit figure `yaml:"onRateLimit"`
	}
	Calendar *calendarSettings
}

type calendarSettings struct {
	Zone     string
	Windows  []calendar.Window
	Holidays []string
}
