package catalogue

import (
	"retry-worker/internal/calendar"
	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/text"
)

// The types of this file are the catalogue as people write it. catalogue.schema.json says what each key means and may
// hold. Every file is validated against it before it is decoded.

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
	TotalLimit        Duration `yaml:"totalLimit"`
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
		Base   Duration
		Factor float64
	}
	Constant Duration
	List     []Duration
	Min      Duration
	Max      Duration
	Jitter   figure
	Rounding Duration
}

// destinationSettings holds the settings of one destination. Absent, and so zero, ones are inherited.
type destinationSettings struct {
	Label   text.Translated
	OpensAt struct {
		Failures figure
		Of       int
		Within   Duration
	} `yaml:"opensAt"`
	Probe struct {
		Every  Duration
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
