package gatewaytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// checkVariables refuses what is no JSON object; empty means none were given.
func checkVariables(doc string) error {
	if doc == "" || isObject(doc) {
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "variables must be a JSON object, found %.60q", doc)
}

func isObject(doc string) bool {
	trimmed := strings.TrimLeft(doc, " \t\r\n")
	return strings.HasPrefix(trimmed, "{") && json.Valid([]byte(doc))
}

func mustBeObject(what, doc string) {
	if !isObject(doc) {
		panic(fmt.Sprintf("gatewaytest: %s must be a JSON object, found %.60q", what, doc))
	}
}

// fetched keeps only the named top-level members of doc; no names keep all.
// A document of which all is kept is returned as it came.
func fetched(doc string, names []string) string {
	if len(names) == 0 || holdsOnly(doc, names) {
		return doc
	}
	var kept strings.Builder
	for m := (members{doc: doc}); m.next(); {
		if slices.Contains(names, m.key) {
			addMember(&kept, m.member)
		}
	}
	if kept.Len() == 0 {
		return "{}"
	}
	kept.WriteByte('}')
	return kept.String()
}

func holdsOnly(doc string, names []string) bool {
	for m := (members{doc: doc}); m.next(); {
		if !slices.Contains(names, m.key) {
			return false
		}
	}
	return true
}

func addMember(to *strings.Builder, member string) {
	if to.Len() == 0 {
		to.WriteByte('{')
	} else {
		to.WriteByte(',')
	}
	to.WriteString(member)
}

// members walks the top level of a valid JSON object without decoding it: the
// benchmark filters 30,000 documents a second.
type members struct {
	doc    string
	at     int
	key    string // decoded
	member string // "key":value as it stands
}

func (m *members) next() bool {
	quote := strings.IndexByte(m.doc[m.at:], '"')
	if quote < 0 {
		return false
	}
	start := m.at + quote
	m.at = stringEnd(m.doc, start)
	m.key = m.doc[start+1 : m.at-1]
	if strings.IndexByte(m.key, '\\') >= 0 {
		_ = json.Unmarshal([]byte(m.doc[start:m.at]), &m.key) // cannot fail: the document is valid
	}
	m.at = valueEnd(m.doc, m.at)
	m.member = m.doc[start:m.at]
	return true
}

// stringEnd is the place behind the string that opens at i.
func stringEnd(doc string, i int) int {
	for i++; doc[i] != '"'; i++ {
		if doc[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// valueEnd is the place of the comma or brace that ends the member at i.
func valueEnd(doc string, i int) int {
	for depth := 0; ; i++ {
		switch doc[i] {
		case '"':
			i = stringEnd(doc, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
}

// merged lays the members of over upon doc; both are JSON objects or empty.
func merged(doc, over string) string {
	if over == "" || over == "{}" {
		return doc
	}
	all := decoded(doc)
	for name, value := range decoded(over) {
		all[name] = value
	}
	return encoded(all)
}

func decoded(doc string) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	if doc != "" {
		_ = json.Unmarshal([]byte(doc), &all) // cannot fail: documents are checked when they come in
	}
	return all
}

func encoded(all map[string]json.RawMessage) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(all) // cannot fail: the values are valid JSON
	return strings.TrimSuffix(out.String(), "\n")
}

// padded adds a member "padding" that brings doc to size bytes; a document that
// is as large already stays as it is.
func padded(doc string, size int) string {
	const frame = len(`,"padding":""}`) - 1
	missing := size - len(doc) - frame
	if missing <= 0 {
		return doc
	}
	comma := ","
	if len(decoded(doc)) == 0 {
		comma, missing = "", missing+1
	}
	body := strings.TrimRight(doc, " \t\r\n")
	return body[:len(body)-1] + comma + `"padding":"` + strings.Repeat("x", missing) + `"}`
}
