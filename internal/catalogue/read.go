package catalogue

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// reader fills a document with what a YAML file says, strictly, and collects what is wrong.
type reader struct {
	source string
	// places of the fields that are there, by their paths.
	places   map[string]place
	problems []Problem
	// reported are the lines and paths of problems.
	reported map[string]bool
	more     int
	// base are the parts of the built-in catalogue in a file that extends it, effective both in one; nil otherwise.
	base      map[*yaml.Node]bool
	effective []byte
}

// maxText is the characters of one text.
const maxText = 1000

// fileField stands for the whole in problems.
const fileField = "file"

// document reads as much of content into doc as is sound; false where there is nothing to look at further. What is
// wrong leaves its field at the zero value.
func (r *reader) document(content []byte, doc *document) bool {
	if len(content) > maxBytes {
		r.problemAt(1, fileField, "more than 1 MiB", "a catalogue of at most 1 MiB")
		return false
	}
	if line, ok := invalidUTF8(content); ok {
		r.problemAt(line, fileField, "bytes that are not UTF-8", "text in UTF-8")
		return false
	}
	root, ok := r.parse(content)
	if ok {
		root, ok = r.extended(root)
	}
	if ok {
		r.value(root, "", reflect.ValueOf(doc).Elem())
	}
	return ok && root.Kind == yaml.MappingNode
}

func invalidUTF8(content []byte) (line int, found bool) {
	for i := 0; i < len(content); {
		c, size := utf8.DecodeRune(content[i:])
		if c == utf8.RuneError && size == 1 {
			return 1 + bytes.Count(content[:i], []byte("\n")), true
		}
		i += size
	}
	return 0, false
}

// parse returns the one document that content holds.
func (r *reader) parse(content []byte) (root *yaml.Node, ok bool) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var doc, next yaml.Node
	switch err := decode(decoder, &doc); {
	case errors.Is(err, io.EOF), err == nil && isNull(doc.Content[0]):
		r.problemAt(1, fileField, "nothing", `a catalogue, which begins with "version: 1"`)
		return nil, false
	case err != nil:
		r.notYAML(err)
		return nil, false
	}
	switch err := decode(decoder, &next); {
	case errors.Is(err, io.EOF):
		return doc.Content[0], true
	case err != nil:
		r.notYAML(err)
	default:
		r.problemAt(next.Line, fileField, "a second YAML document", "one")
	}
	return nil, false
}

// decode makes an error of a panic: the library's parser has had some, and a file that people edit must not stop the
// worker.
func decode(d *yaml.Decoder, to *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: %v", p)
		}
	}()
	return d.Decode(to)
}

var yamlLine = regexp.MustCompile(`^line ([0-9]+): `)

func (r *reader) notYAML(err error) {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if at := yamlLine.FindStringSubmatch(text); at != nil {
		line, _ = strconv.Atoi(at[1])
		text = text[len(at[0]):]
	}
	r.problemAt(line, fileField, "what is not YAML ("+strings.Join(strings.Fields(text), " ")+")", "YAML")
}

// value reads n, which stands at path, into v.
func (r *reader) value(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		r.problemAt(n.Line, path, "an anchor or alias ("+quote(n.Anchor+n.Value)+")", "the value written out")
		return
	}
	if s, ok := scalars[v.Type()]; ok {
		if text, ok := r.text(n, path, s.expected, true); ok && !s.read(text, v) {
			r.problemAt(n.Line, path, describe(n), s.expected)
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.value(n, path, v.Elem())
	case reflect.Struct:
		r.fields(n, path, v)
	case reflect.Map:
		r.named(n, path, v)
	case reflect.Slice:
		r.list(n, path, v)
	case reflect.Int64:
		r.whole(n, path, v)
	case reflect.Float64:
		r.number(n, path, v)
	case reflect.Bool:
		r.boolean(n, path, v)
	default:
		r.string(n, path, v)
	}
}

// fields reads a mapping into a struct.
func (r *reader) fields(n *yaml.Node, path string, v reflect.Value) {
	known := fieldsOf(v.Type())
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.name
	}
	pairs, ok := r.mapping(n, path, "a mapping of "+strings.Join(names, ", "))
	if !ok {
		return
	}
	for _, p := range pairs {
		if i := slices.Index(names, p.key.Value); i >= 0 {
			field := v.FieldByIndex(known[i].index)
			r.value(p.value, p.path, field)
			r.limit(p.value, p.path, field, known[i].limits)
			continue
		}
		r.problemAt(p.key.Line, p.path, "the unknown key "+quote(p.key.Value), "one of "+oneOf(p.key.Value, names))
	}
	for _, f := range known {
		if at := join(path, f.name); !f.optional && !r.has(at) {
			r.problem(at, "nothing", "this key, which must be there")
		}
	}
}

// has reports whether the key at path is there, be it sound or not.
func (r *reader) has(path string) bool {
	_, ok := r.places[path]
	return ok
}

// named reads a mapping of names into a map.
func (r *reader) named(n *yaml.Node, path string, v reflect.Value) {
	pairs, _ := r.mapping(n, path, "a mapping of names")
	v.Set(reflect.MakeMap(v.Type()))
	for _, p := range pairs {
		key, item := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		s, ok := scalars[key.Type()]
		if !ok {
			s = scalars[reflect.TypeFor[destinationName]()] // other names have the same form
		}
		if !s.read(p.key.Value, key) {
			r.problemAt(p.key.Line, p.path, quote(p.key.Value), s.expected)
			continue
		}
		r.value(p.value, p.path, item)
		v.SetMapIndex(key, item)
	}
}

// pair of a mapping.
type pair struct {
	key, value *yaml.Node
	path       string
}

// mapping returns n's pairs, each key once; false where it is none.
func (r *reader) mapping(n *yaml.Node, path, expected string) (pairs []pair, ok bool) {
	if n.Kind != yaml.MappingNode || n.Tag != "!!map" {
		r.problemAt(n.Line, path, describe(n), expected)
		return nil, false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Anchor != "" {
			r.problemAt(key.Line, path, describe(key)+" as a key", "a name")
			continue
		}
		p := pair{key, value, join(path, key.Value)}
		if r.has(p.path) {
			r.problemAt(key.Line, p.path, fmt.Sprintf("the key again (it stands on line %d)", r.line(p.path)), "each key once")
			continue
		}
		r.places[p.path] = place{key.Line, value}
		pairs = append(pairs, p)
	}
	return pairs, true
}

func (r *reader) list(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.SequenceNode || n.Tag != "!!seq" {
		r.problemAt(n.Line, path, describe(n), "a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		at := itemOf(path, i)
		r.places[at] = place{item.Line, item}
		r.value(item, at, v.Index(i))
	}
}

// limit reports what v, which was read of n, has outside of its field's limits.
func (r *reader) limit(n *yaml.Node, path string, v reflect.Value, limits map[string]int) {
	most, bounded := limits["maximum"]
	switch kind := v.Kind(); {
	case kind == reflect.Int64 && bounded && (v.Int() < int64(limits["minimum"]) || v.Int() > int64(most)):
		r.problemAt(n.Line, path, describe(n), fmt.Sprintf("a whole number from %d to %d", limits["minimum"], most))
	case kind == reflect.Float64 && bounded && (v.Float() < float64(limits["minimum"]) || v.Float() > float64(most)):
		r.problemAt(n.Line, path, describe(n), fmt.Sprintf("a number from %d to %d", limits["minimum"], most))
	case kind == reflect.Map && limits["maxProperties"] > 0 && v.Len() > limits["maxProperties"]:
		r.problem(path, fmt.Sprintf("%d keys", v.Len()), fmt.Sprintf("at most %d", limits["maxProperties"]))
	case kind == reflect.Slice && !v.IsNil():
		r.limitItems(n, path, v, limits)
	}
}

func (r *reader) limitItems(n *yaml.Node, path string, v reflect.Value, limits map[string]int) {
	switch most, bounded := limits["maxItems"]; {
	case v.Len() == 0 && limits["minItems"] > 0:
		r.problem(path, "an empty list", "at least one item, or no such key")
	case bounded && v.Len() > most:
		r.problem(path, fmt.Sprintf("%d items", v.Len()), fmt.Sprintf("at most %d", most))
		v.SetLen(most)
	}
	if _, unique := limits["uniqueItems"]; !unique {
		return
	}
	seen := make(map[string]bool)
	for i, item := range n.Content[:v.Len()] {
		if alike := strings.ToLower(item.Value); seen[alike] {
			r.problem(itemOf(path, i), describe(item)+" again", "each once")
		} else {
			seen[alike] = true
		}
	}
}

// itemOf returns the path of a list's item, counted from 0.
func itemOf(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func (r *reader) whole(n *yaml.Node, path string, v reflect.Value) {
	whole, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Tag != "!!int" || err != nil || strconv.FormatInt(whole, 10) != n.Value {
		r.problemAt(n.Line, path, describe(n), "a whole number")
		return
	}
	v.SetInt(whole)
}

func (r *reader) boolean(n *yaml.Node, path string, v reflect.Value) {
	if n.Tag != "!!bool" || n.Value != "true" && n.Value != "false" {
		r.problemAt(n.Line, path, describe(n), "true or false")
		return
	}
	v.SetBool(n.Value == "true")
}

func (r *reader) number(n *yaml.Node, path string, v reflect.Value) {
	f, err := strconv.ParseFloat(n.Value, 64)
	if n.Tag != "!!int" && n.Tag != "!!float" || err != nil || math.IsNaN(f) {
		r.problemAt(n.Line, path, describe(n), "a number")
		return
	}
	v.SetFloat(f)
}

func (r *reader) string(n *yaml.Node, path string, v reflect.Value) {
	expected, allowed := "text", choices[v.Type()]
	if allowed != nil {
		expected = "one of " + oneOf(n.Value, allowed)
	}
	text, ok := r.text(n, path, expected, numeric[v.Type()])
	if ok && allowed != nil && !slices.Contains(allowed, text) {
		r.problemAt(n.Line, path, describe(n), expected)
		return
	}
	v.SetString(text)
}

// text returns a scalar's, which may be a number where digits are taken for text.
func (r *reader) text(n *yaml.Node, path, expected string, digits bool) (string, bool) {
	isText := n.Tag == "!!str" || digits && (n.Tag == "!!int" || n.Tag == "!!float")
	switch {
	case n.Kind != yaml.ScalarNode || !isText:
		if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
			expected += " (in quotes, if it is meant as text)"
		}
		r.problemAt(n.Line, path, describe(n), expected)
	case utf8.RuneCountInString(n.Value) > maxText:
		r.problemAt(n.Line, path, fmt.Sprintf("%d characters", utf8.RuneCountInString(n.Value)),
			fmt.Sprintf("at most %d", maxText))
	case strings.TrimSpace(n.Value) == "":
		r.problemAt(n.Line, path, "empty text", "something in it, or no such key")
	case strings.ContainsFunc(n.Value, unicode.IsControl):
		r.problemAt(n.Line, path, quote(n.Value), "text of one line without control characters")
	default:
		return n.Value, true
	}
	return "", false
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// describe returns n as messages show it.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch {
	case isNull(n):
		return "nothing"
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle|yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0, n.Tag == "!!str":
		return quote(n.Value)
	default: // a number, true, a date
		return strings.Trim(quote(n.Value), `"`)
	}
}

// join returns the path of a key; one that is no plain word is quoted, so that a problem stays one line.
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

// documentField is a field of a document's struct.
type documentField struct {
	name     string
	index    []int
	optional bool
	// limits that its jsonschema tag names, for editors as well: minimum, maxItems and so on.
	limits map[string]int
}

// fieldsOf lists the fields of t and of what it embeds, as the json tags name them.
func fieldsOf(t reflect.Type) []documentField {
	var fields []documentField
	for _, f := range reflect.VisibleFields(t) {
		if tag, ok := f.Tag.Lookup("json"); ok {
			name, optional := strings.CutSuffix(tag, ",omitempty")
			fields = append(fields, documentField{name, f.Index, optional, limitsOf(f)})
		}
	}
	return fields
}

func limitsOf(f reflect.StructField) map[string]int {
	limits := make(map[string]int)
	for limit := range strings.SplitSeq(f.Tag.Get("jsonschema"), ",") {
		name, value, _ := strings.Cut(limit, "=")
		limits[name], _ = strconv.Atoi(value) // 0 of what is no number
	}
	return limits
}
