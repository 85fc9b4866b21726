package catalogue

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"retry-worker/internal/text"
)

// reader decodes a YAML file strictly into a document, and collects its problems.
type reader struct {
	source string
	// places holds the place of each field by path.
	places   map[string]place
	problems []Problem
	// effective is the built-in catalogue with the file merged into it; nil if the file does not extend it.
	effective []byte
}

// place is the line and node of a field. A field from the built-in catalogue has the line of the nearest key of the
// file above it.
type place struct {
	line int
	node *yaml.Node
}

// fileField is the field of problems with the whole file.
const fileField = "file"

// document decodes the valid part of content into doc; other fields stay zero. It returns false if nothing more can be
// checked.
func (r *reader) document(content []byte, doc *document) bool {
	if len(content) > maxBytes {
		r.problemAt(1, fileField, "more than 1 MiB", "a catalogue of at most 1 MiB")
		return false
	}
	const never = "\xff" // in UTF-8
	if i := bytes.Index(bytes.ToValidUTF8(content, []byte(never)), []byte(never)); i >= 0 {
		r.problemAt(1+bytes.Count(content[:i], []byte("\n")), fileField, "bytes that are not UTF-8", "text in UTF-8")
		return false
	}
	root, ok := r.parse(content)
	if !ok {
		return false
	}
	r.clean(root, "")
	if root, ok = r.extended(root); !ok {
		return false
	}
	err := compiler().MustCompile(schemaName).Validate(r.value(root, "", 1))
	if wrong, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		r.refuse(wrong)
	}
	decodable(root, "")
	if err := recovered(func() error { return root.Decode(doc) }); err != nil && len(r.problems) == 0 {
		r.problemAt(1, fileField, "what cannot be read ("+oneSpace(err)+")", "a catalogue")
	}
	return root.Kind == yaml.MappingNode
}

// parse returns the one document that content holds.
func (r *reader) parse(content []byte) (root *yaml.Node, ok bool) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var doc, next yaml.Node
	switch err := recovered(func() error { return decoder.Decode(&doc) }); {
	case errors.Is(err, io.EOF), err == nil && isNull(doc.Content[0]):
		r.problemAt(1, fileField, "nothing", `a catalogue, which begins with "extends: built-in" or "version: 1"`)
		return nil, false
	case err != nil:
		r.notYAML(err)
		return nil, false
	}
	switch err := recovered(func() error { return decoder.Decode(&next) }); {
	case errors.Is(err, io.EOF):
		return doc.Content[0], true
	case err != nil:
		r.notYAML(err)
	default:
		r.problemAt(next.Line, fileField, "a second YAML document", "one")
	}
	return nil, false
}

// recovered turns a panic into an error. The YAML library has had panics, and a file that people edit must not stop the
// worker.
func recovered(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: %v", p)
		}
	}()
	return do()
}

var (
	yamlLine = regexp.MustCompile(`^line ([0-9]+): `)
	// parserError matches the errors whose lines the YAML library counts from 0.
	parserError = regexp.MustCompile(`^did not find expected (?:node content|key|'|<)`)
)

func (r *reader) notYAML(err error) {
	text, line := strings.TrimPrefix(oneSpace(err), "yaml: "), 1
	if at := yamlLine.FindStringSubmatch(text); at != nil {
		line, _ = strconv.Atoi(at[1])
		text = text[len(at[0]):]
	}
	if parserError.MatchString(text) {
		line++
	}
	r.problemAt(line, fileField, "what is not YAML ("+text+")", "YAML")
}

func oneSpace(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// clean reports and removes what a schema cannot check: anchors, aliases, tags, keys that are not text, and repeated
// keys.
func (r *reader) clean(n *yaml.Node, path string) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		r.problemAt(n.Line, path, "an anchor or alias ("+quote(n.Anchor+n.Value)+")", "the value written out")
		nothing(n)
	case !slices.Contains(tags[n.Kind], n.Tag):
		r.problemAt(n.Line, path, describe(n)+" with the tag "+quote(n.Tag), "the value without a tag")
		nothing(n)
	case n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			r.clean(item, itemOf(path, i))
		}
	case n.Kind == yaml.MappingNode:
		lines := make(map[string]int)
		var sound []*yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, at := n.Content[i], join(path, n.Content[i].Value)
			switch first, again := lines[key.Value]; {
			case key.Kind != yaml.ScalarNode || key.Anchor != "":
				r.problemAt(key.Line, path, describe(key)+" as a key", "a name")
				continue
			case again:
				r.problemAt(key.Line, at, fmt.Sprintf("the key again (it stands on line %d)", first), "each key once")
				continue
			}
			lines[key.Value], key.Tag = key.Line, "!!str"
			r.clean(n.Content[i+1], at)
			sound = append(sound, key, n.Content[i+1])
		}
		n.Content = sound
	}
}

// tags holds the tags that a value may have.
var tags = map[yaml.Kind][]string{
	yaml.MappingNode: {"!!map"}, yaml.SequenceNode: {"!!seq"},
	yaml.ScalarNode: {"!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!merge"},
}

// nothing makes n null.
func nothing(n *yaml.Node) { *n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line} }

// blank makes n, at path, null, so that its field stays zero. A list's item becomes an empty text or mapping: it keeps
// its place.
func blank(n *yaml.Node, isMapping bool, path string) {
	nothing(n)
	switch isItem := strings.HasSuffix(path, "]"); {
	case isItem && isMapping:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	case isItem:
		n.Tag = "!!str"
	}
}

// value returns n, which stands at path on that line, as JSON, and records the places in it. A scalar that is not JSON,
// such as 0x10, becomes null.
func (r *reader) value(n *yaml.Node, path string, line int) any {
	r.places[path] = place{line, n}
	lineOf := func(n *yaml.Node) int { return cmp.Or(n.Line, line) }
	switch n.Kind {
	case yaml.MappingNode:
		object := make(map[string]any)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			object[key.Value] = r.value(n.Content[i+1], join(path, key.Value), lineOf(key))
		}
		return object
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = r.value(item, itemOf(path, i), lineOf(item))
		}
		return list
	}
	switch {
	case n.Tag == "!!str":
		return n.Value
	case n.Tag == "!!bool" && (n.Value == "true" || n.Value == "false"):
		return n.Value == "true"
	case (n.Tag == "!!int" || n.Tag == "!!float") && json.Valid([]byte(n.Value)):
		return json.Number(n.Value)
	}
	return nil
}

// has reports whether the key at path is present, valid or not.
func (r *reader) has(path string) bool { return r.places[path].node != nil }

// at returns the node at path, or an empty one.
func (r *reader) at(path string) *yaml.Node { return cmp.Or(r.places[path].node, new(yaml.Node)) }

// itemOf returns the path of a list's item, counted from 0.
func itemOf(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// join returns the path of a key. An unusual key is quoted, so that a problem stays on one line.
func join(path, key string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if key == "" || len(key) > 80 || strings.Trim(key, plain) != "" {
		key = quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

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

// secretForm matches what no message shows: the credentials before an address's host, what stands behind the host,
// which may be a chat's token, and the secrets of tokens and webhooks.
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
