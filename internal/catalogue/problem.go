package catalogue

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"retry-worker/internal/text"
)

// Problem is one thing that is wrong with a catalogue.
type Problem struct {
	// Line in the file, from 1.
	Line int `json:"line"`
	// Field is a path such as policies.tiss-submission.backoff.min, or "file" for the whole file.
	Field string `json:"field"`
	// Found and Expected are for people, each one line.
	Found    string `json:"found"`
	Expected string `json:"expected"`
}

// Error is everything that is wrong with a catalogue, in the order of the file.
type Error struct {
	Source string
	// Problems holds at most 20.
	Problems []Problem
	// More counts the problems that are not listed.
	More int
}

// secretForm matches an address with the credentials before its host and what stands behind it, which may be a chat's
// token; tokens and webhook secrets.
var secretForm = regexp.MustCompile(`(://)(?:\S*(@))?([^\s/?#@]*[/?#])\S+|(://)\S*(@)|((?i:rwt_|whsec_))[A-Za-z0-9+/=]+`)

// maxProblems is how many problems are listed. More than that usually have one cause.
const maxProblems = 20

// Lines returns the problems, each `FILE:LINE: FIELD: found …, expected …`, and a last line for those not listed.
func (e *Error) Lines() []string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("%s:%d: %s: found %s, expected %s", e.Source, p.Line, p.Field, p.Found, p.Expected))
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("%s: %d more problems are not listed", e.Source, e.More))
	}
	return lines
}

// Error returns Lines, joined by line breaks.
func (e *Error) Error() string { return strings.Join(e.Lines(), "\n") }

// problem reports what is wrong with the field at path, or where it is missing.
func (r *reader) problem(path, found, expected string) {
	if r.ofBuiltInRule(path) {
		return
	}
	r.problemAt(r.line(path), path, found, expected)
}

// mismatch reports that the text at path is not what is expected.
func (r *reader) mismatch(path, expected string) {
	r.problem(path, describe(r.at(path)), expected)
}

// problemAt reports a problem of a field.
func (r *reader) problemAt(line int, path, found, expected string) {
	r.problems = append(r.problems, Problem{max(line, 1), cmp.Or(path, fileField), found, expected})
}

// line returns the line of the field at path, or of its nearest parent.
func (r *reader) line(path string) int { return max(r.nearest(path).line, 1) }

// nearest returns the place of the field at path, or of its nearest parent.
func (r *reader) nearest(path string) place {
	for {
		at, ok := r.places[path]
		end := strings.LastIndexAny(path, ".[")
		if ok || end < 0 {
			return at
		}
		path = path[:end]
	}
}

// err returns the problems found, or nil. Of a field it returns the first one, from which the others usually follow.
func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	order := func(a, b Problem) int { return cmp.Or(a.Line-b.Line, strings.Compare(a.Field, b.Field)) }
	slices.SortStableFunc(r.problems, order)
	all := slices.CompactFunc(r.problems, func(a, b Problem) bool { return order(a, b) == 0 })
	listed := all[:min(len(all), maxProblems)]
	return &Error{r.source, slices.Clone(listed), len(all) - len(listed)}
}

// quote returns a text for messages: one line, not too long, without what secretForm matches.
func quote(s string) string {
	const most = 60
	s = secretForm.ReplaceAllString(s, "$1$2$3$4$6…$5")
	if utf8.RuneCountInString(s) > most {
		return strconv.Quote(string([]rune(s)[:most])) + "…"
	}
	return strconv.Quote(s)
}

// oneOf lists the known texts, and names the one that was probably meant.
func oneOf(given string, known []string) string {
	list := strings.Join(known, ", ")
	if near := text.Nearest(given, known); near != "" {
		return fmt.Sprintf("%s (did you mean %s?)", list, near)
	}
	return list
}
