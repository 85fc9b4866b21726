// Package catalogue makes policies from a YAML file: the embedded default, or one that overrides it.
//
// A file is read strictly and as a whole. Parse returns a Catalogue, which never changes, or everything that is wrong
// with the file and where. A Watcher takes up a changed file while the program runs.
package catalogue

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/smallfile"
	"retry-worker/internal/text"
)

// Catalogue is a set of policies and the teams that they name. It never changes once it is made.
type Catalogue struct {
	// Version is the first 12 hex digits of the SHA-256 of Effective; every decision records it.
	Version string
	// Source is the file it was read from; "built-in" for the embedded one.
	Source string
	// Policies of the catalogue, each with its Version.
	Policies decision.Policies
	// Teams by their names.
	Teams map[decision.Team]Team
	// Destinations names those that the file configures or a policy has as its default, with inherited settings.
	Destinations destination.Configured

	effective []byte
}

// Team is one of the catalogue's teams, and how it is notified of its dead letters (R21).
type Team struct {
	Description string
	// Email holds the addresses to notify; none means no e-mail.
	Email []string
	// Webhook is the receiver to notify; nil means none.
	Webhook *Webhook
	// Digest says that the team gets a daily review by each of its channels.
	Digest bool
}

// Webhook is a receiver of signed messages.
type Webhook struct {
	URL        string
	SecretFile string `yaml:"secretFile"`
}

// DefaultSource is the Source of the embedded catalogue, and its name in a file that extends it.
const DefaultSource = "built-in"

// maxBytes is the longest catalogue file that is read.
const maxBytes = 1 << 20

//go:embed default.yaml
var defaultYAML []byte

// Default returns the embedded catalogue. Safe for concurrent use.
func Default() *Catalogue {
	parseDefault.Do(func() {
		var err error
		if parsedDefault, err = Parse(DefaultSource, defaultYAML); err != nil {
			panic(err) // cannot be: a test reads what is embedded
		}
	})
	return parsedDefault
}

var (
	parseDefault  sync.Once
	parsedDefault *Catalogue
)

// Untold returns the teams without an e-mail address or a webhook, in alphabetical order.
func (c *Catalogue) Untold() []decision.Team {
	untold := slices.Sorted(maps.Keys(c.Teams))
	return slices.DeleteFunc(untold,
		func(name decision.Team) bool { return len(c.Teams[name].Email) > 0 || c.Teams[name].Webhook != nil })
}

// Effective returns the whole catalogue: the content, merged with the built-in catalogue if it extends that.
func (c *Catalogue) Effective() []byte { return bytes.Clone(c.effective) }

// Parse makes a catalogue from content, at most 1 MiB of YAML in UTF-8. If content is wrong, the error is an *Error,
// and source begins each of its lines. Parse does not keep content.
func Parse(source string, content []byte) (*Catalogue, error) {
	r := &reader{source: source, places: make(map[string]place)}
	c := &Catalogue{Source: source, effective: bytes.Clone(content)}
	var doc document
	if r.document(content, &doc) {
		if r.effective != nil {
			c.effective = r.effective
		}
		c.Version = fmt.Sprintf("%.6x", sha256.Sum256(withFiles(source, c.effective)))
		(&builder{reader: r, catalogue: c}).build(&doc)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Load makes a catalogue from the file at path. Its error says why the file cannot be read, or is an *Error if the
// content is wrong.
func Load(path string) (*Catalogue, error) {
	content, err := read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, content)
}

// read returns the content of the file at path, followed by checksums of the files that it names, so that their changes
// show. A file that is too long is left to Parse.
func read(path string) ([]byte, error) {
	content, err := smallfile.Read(path, maxBytes)
	if err != nil && !errors.Is(err, smallfile.ErrTooLong) {
		return nil, fmt.Errorf("%s: the catalogue cannot be read: %w, expected a readable YAML file", path, err)
	}
	return withFiles(path, content), nil
}

// Open is like Load, and takes up later changes of the file, as a whole or not at all. A rejection is an *Error if the
// content is wrong; otherwise it says why the file cannot be read.
func Open(path string) (*smallfile.Watcher[Catalogue], error) {
	return smallfile.Watch(path, read, Parse)
}

// Plan is a policy's ladder: every retry of a failure that recurs at once after each of them. It is safe for concurrent
// use once it is made.
type Plan struct {
	Policy      string `json:"policy"`
	Description string `json:"description"`
	// Destination and FirstFailure are those that the plan was made for; empty if none were given.
	Destination  string     `json:"destination,omitempty"`
	FirstFailure *time.Time `json:"firstFailure,omitempty"`
	// MaxRetries is the number of retries after the first try (R12).
	MaxRetries int64 `json:"maxRetries"`
	// TotalLimit is the time from the first failure (R20); 0 means no limit.
	TotalLimit Duration `json:"totalLimit"`
	// Retries in their order; never nil.
	Retries []PlannedRetry `json:"retries"`
	// NeverScheduled counts the retries that could only come after TotalLimit (R20).
	NeverScheduled int64 `json:"neverScheduled"`
}

// Duration is a length of time, in JSON in seconds.
type Duration time.Duration

// String returns d as a catalogue has it.
func (d Duration) String() string { return text.Duration(time.Duration(d)) }

// MarshalJSON returns d in seconds.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).Seconds()) }

// PlannedRetry is one step of the ladder.
type PlannedRetry struct {
	// Number counts from 1.
	Number int64 `json:"retry"`
	// Wait is the time before the retry.
	Wait Range `json:"wait"`
	// FromFirst is the time since the first failure.
	FromFirst Range `json:"fromFirstFailure"`
	// MayPassLimit reports whether long jitter would carry the retry past the total limit. It is then not scheduled.
	MayPassLimit bool `json:"mayPassLimit"`
	// At is the nominal time of the retry. Why says why it waits for the destination to open; empty if it does not.
	At  *time.Time `json:"at,omitempty"`
	Why string     `json:"closed,omitempty"`
}

// Range is what the jitter may draw: the earliest, the nominal and the latest.
type Range struct {
	Earliest Duration `json:"earliest"`
	Nominal  Duration `json:"nominal"`
	Latest   Duration `json:"latest"`
}

// PlanAt returns the plan of policy for a first failure at an instant (zero: any time) of a job that brings own (zero:
// nothing) and goes to the destination of that name (empty: the policy's default). A retry that falls into its closed
// hours is made when it opens (R29). Closed hours do not count toward the total limit (R27).
func PlanAt(policy *decision.Policy, own decision.OwnPolicy, name string, first time.Time) *Plan {
	maxRetries, backoff := policy.Limits(own)
	p := &Plan{
		Policy: policy.Name, Description: policy.Description, MaxRetries: maxRetries,
		TotalLimit: Duration(policy.TotalLimit), Retries: []PlannedRetry{},
	}
	switch {
	case policy.Destination == nil:
		name = ""
	case name == "":
		name = policy.Destination.Default
	}
	var to destination.Settings
	if !first.IsZero() {
		if to = policy.Destinations.Of(name); to.Calendar != nil {
			first = first.In(to.Calendar.Zone())
		}
		p.Destination, p.FirstFailure = name, &first
		if p.TotalLimit > 0 {
			p.TotalLimit = Duration(policy.TimeLimit(name, first).Sub(first))
		}
	}
	p.climb(&backoff, &to, first)
	p.NeverScheduled = maxRetries - int64(len(p.Retries))
	return p
}

// climb adds the retries that the total limit allows (R20).
func (p *Plan) climb(backoff *decision.BackoffRule, to *destination.Settings, first time.Time) {
	var sum Range
	var limit time.Time
	if p.TotalLimit > 0 {
		limit = first.Add(time.Duration(p.TotalLimit))
	}
	for n := range p.MaxRetries {
		wait := func(draw float64) Duration { return Duration(backoff.After(draw, n).Delay) }
		r := PlannedRetry{Number: n + 1, Wait: Range{wait(0), wait(0.5), wait(math.Nextafter(1, 0))}}
		after := func(sum, wait Duration) time.Time { return first.Add(time.Duration(sum)).Add(time.Duration(wait)) }
		wanted := after(sum.Nominal, r.Wait.Nominal)
		at := to.Open(wanted, limit, 0.5)
		sum = Range{
			Duration(to.Open(after(sum.Earliest, r.Wait.Earliest), limit, 0).Sub(first)), Duration(at.Sub(first)),
			Duration(to.Open(after(sum.Latest, r.Wait.Latest), limit, 1).Sub(first)),
		}
		if p.TotalLimit > 0 && sum.Earliest > p.TotalLimit {
			return
		}
		r.FromFirst, r.MayPassLimit = sum, p.TotalLimit > 0 && sum.Latest > p.TotalLimit
		if p.FirstFailure != nil {
			r.At, r.Why = &at, to.Calendar.Why(wanted)
		}
		p.Retries = append(p.Retries, r)
	}
}
