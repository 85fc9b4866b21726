// Package catalogue makes policies of a YAML file: the embedded default, or one that overrides it.
//
// A file is read strictly and whole: Parse finds everything that is wrong with it and says where, or makes a
// Catalogue, which is never changed afterwards. A Watcher takes a changed file up while the program runs.
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

// Catalogue is a set of policies and the teams that they name. It is a value: never changed once it is made.
type Catalogue struct {
	// Version is the first 12 hex digits of the SHA-256 of Effective; every decision records it.
	Version string
	// Source is the file it was read from; "built-in" for the embedded one.
	Source string
	// Policies of the catalogue, each with its Version.
	Policies decision.Policies
	// Teams by their names.
	Teams map[decision.Team]Team
	// Destinations that the file configures, or a policy has as its default, with what they inherit; all others have
	// DefaultDestination.
	Destinations       map[string]destination.Settings
	DefaultDestination destination.Settings

	effective []byte
}

// Team is one of the catalogue's teams, and how it is told of its dead letters (R21). A catalogue has its keys.
type Team struct {
	Description string
	// Email are the addresses that are told; none: not by e-mail.
	Email []string
	// Webhook is the receiver that is told; nil: none.
	Webhook *Webhook
	// Digest says that the team gets a review each day, by all of its ways.
	Digest bool
}

// Webhook is a receiver of signed messages.
type Webhook struct {
	URL        string
	SecretFile string `yaml:"secretFile"`
}

// DefaultSource is the Source of the embedded catalogue.
const DefaultSource = "built-in"

// maxBytes of a catalogue's file; more is not even read.
const maxBytes = 1 << 20

//go:embed default.yaml
var defaultYAML []byte

// Default returns the embedded catalogue. Safe for concurrent use.
func Default() *Catalogue { return parseDefault() }

var parseDefault = sync.OnceValue(func() *Catalogue {
	c, err := Parse(DefaultSource, defaultYAML)
	if err != nil {
		panic(err) // cannot be: a test reads what is embedded
	}
	return c
})

// Untold returns the teams that nobody is told for, by e-mail or webhook, in alphabetical order.
func (c *Catalogue) Untold() []decision.Team {
	untold := slices.Sorted(maps.Keys(c.Teams))
	return slices.DeleteFunc(untold,
		func(name decision.Team) bool { return len(c.Teams[name].Email) > 0 || c.Teams[name].Webhook != nil })
}

// Effective returns the whole catalogue: the content, or, where that extends the built-in one, both in one.
func (c *Catalogue) Effective() []byte { return bytes.Clone(c.effective) }

// Parse makes a catalogue of content, at most 1 MiB of YAML in UTF-8. source stands in front of every line of the
// error, which is an *Error where the content is wrong. It does not keep content.
func Parse(source string, content []byte) (*Catalogue, error) {
	r := &reader{source: source, places: make(map[string]place), reported: make(map[string]bool)}
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

// Load makes a catalogue of the file at path. Its error says what could not be read, or is an *Error where the
// content is wrong.
func Load(path string) (*Catalogue, error) {
	content, err := read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, content)
}

// read returns the content of the file at path, and what tells when a file that it names has changed. What is too long
// is for Parse to refuse.
func read(path string) ([]byte, error) {
	content, err := smallfile.ReadRegular(path, maxBytes)
	if err != nil && !errors.Is(err, smallfile.ErrTooLong) {
		return nil, fmt.Errorf("%s: the catalogue cannot be read: %w, expected a readable YAML file", path, err)
	}
	return withFiles(path, content), nil
}

// Open is Load, and takes what changes in the file up while the program runs: whole or not at all. Rejections are an
// *Error where the content is wrong, and otherwise say why the file cannot be read.
func Open(path string) (*smallfile.Watcher[Catalogue], error) {
	return smallfile.Watch(path, read, Parse)
}
