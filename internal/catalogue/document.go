package catalogue

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/calendar"
	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/text"
)

// The types of this file are the catalogue as people write it. catalogue.schema.json says what each key means and may
// hold. Every file is validated against it before it is decoded.

type document struct {
	Teams        map[string]Team
	Policies     map[string]policy
	Destinations map[string]yaml.Node // of destinationSettings
}

type policy struct {
	decision.Policy   `yaml:",inline"`
	ID                struct{ Variable, Pattern string }
	Error             struct{ Variable string }
	HTTPStatus        struct{ Variable string } `yaml:"httpStatus"`
	Backoff           backoff
	Vocabulary        classify.Vocabulary
	Permanent         []classify.Rule
	Transient         []classify.Rule
	PresumedPermanent []classify.Rule `yaml:"presumedPermanent"`
	Context           map[string]decision.ContextField
	Calendar          *calendarSettings
}

type backoff struct {
	decision.BackoffRule `yaml:",inline"`
	Constant             time.Duration
	Exponential          *struct {
		Base   time.Duration
		Factor float64
	}
}

// destinationSettings hold what is inherited where the file does not say otherwise.
type destinationSettings struct {
	destination.Settings `yaml:",inline"`
	Own                  *calendarSettings `yaml:"calendar"`
}

type calendarSettings struct {
	Zone     string
	Windows  []calendar.Window
	Holidays []string
}

// durations and figures are the keys of durations, and of numbers with a unit.
var (
	durations = []string{"base", "constant", "list", "min", "max", "rounding", "totalLimit", "within", "every"}
	figures   = []string{"jitter", "failures", "start", "most", "onRateLimit"}
)

// decodable replaces the valid scalars below n with a form of their own by those that YAML decodes: durations as Go has
// them, 12.5% as 0.125, 20/min and x0.5 without their units, and x2 every 15s as a factor and a step.
func decodable(n *yaml.Node, key string) {
	for i, part := range n.Content {
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			key = n.Content[i-1].Value
		}
		switch factor, every, grows := strings.Cut(part.Value, " every "); {
		case part.Kind != yaml.ScalarNode || isNull(part):
			decodable(part, key)
		case key == "step" && grows:
			n.Content[i] = scalar(duration(every))
			n.Content = append(n.Content, scalar("factor"), scalar(figure(factor)))
		case slices.Contains(durations, key):
			n.Content[i] = scalar(duration(part.Value))
		case slices.Contains(figures, key):
			n.Content[i] = scalar(figure(part.Value))
		}
	}
}

func scalar(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: value} }

func duration(s string) string {
	d, _ := text.ParseDuration(s)
	return d.String()
}

func figure(s string) string {
	number, isPercentage := strings.CutSuffix(strings.TrimSuffix(strings.TrimPrefix(s, "x"), "/min"), "%")
	if n, err := strconv.ParseFloat(number, 64); err == nil && isPercentage {
		return strconv.FormatFloat(n/100, 'g', -1, 64)
	}
	return number
}

// formats holds the schema's formats that are more than a pattern.
var formats = map[string]func(text string) error{
	"duration 1ms-366d": between(time.Millisecond, text.LongestDuration),
	"duration 10s-1h":   between(10*time.Second, time.Hour),
	"duration 1m-15m":   between(time.Minute, 15*time.Minute),
	"growth": func(text string) error {
		_, every, _ := strings.Cut(text, " every ")
		return between(time.Second, time.Hour)(every)
	},
	"days":     func(text string) error { return calendar.Window{Days: text}.Check() },
	"weekdays": func(text string) error { return calendar.Window{Weekdays: text}.Check() },
	"hours":    func(text string) error { return calendar.Window{Hours: text}.Check() },
}

// between returns a check that a text is a duration from least to most.
func between(least, most time.Duration) func(string) error {
	return func(s string) error {
		if d, ok := text.ParseDuration(s); !ok || d < least || d > most {
			return errors.New("another form") // the schema's title says which one is expected
		}
		return nil
	}
}
