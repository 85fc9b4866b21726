// Package catalogue makes policies from a YAML file: the embedded default, or one that overrides it.
//
// A file is read strictly and as a whole. Parse returns a Catalogue, which never changes, or everything that is wrong
// with the file and where. A Watcher takes up a changed file while the program runs.
package catalogue

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/smallfile"
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

// DefaultSource is the Source of the embedded catalogue.
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
		c.Version = versionOf(withFiles(source, c.effective))
		(&builder{reader: r, catalogue: c}).build(&doc)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// versionOf returns the first 12 hex digits of content's SHA-256.
func versionOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:6])
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
