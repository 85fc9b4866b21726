package worker

import (
	"encoding/json"
	"strings"

	"retry-worker/internal/decision"
)

// values are the members of a JSON object in their order, each as the text it came as.
type values []member

type member struct {
	name  string
	value decision.Value
}

// get is the value of name, the last one where there are several; empty where there is none.
func (vs values) get(name string) decision.Value {
	for i := len(vs) - 1; i >= 0; i-- {
		if vs[i].name == name {
			return vs[i].value
		}
	}
	return ""
}

// splitObject takes a JSON object apart at its top level; false where text is none.
// encoding/json says whether it is valid, so that what follows need not.
func splitObject(text string) (values, bool) {
	if !json.Valid([]byte(text)) {
		return nil, false
	}
	rest := skip(text, ' ')
	if rest[0] != '{' {
		return nil, false
	}
	vs := make(values, 0, 4)
	for rest = rest[1:]; ; {
		rest = skip(rest, ',')
		if rest[0] == '}' {
			return vs, true
		}
		end := valueEnd(rest)
		name := rest[:end]
		rest = skip(rest[end:], ':')
		end = valueEnd(rest)
		vs = append(vs, member{unquote(name), decision.Value(strings.TrimRight(rest[:end], jsonSpace))})
		rest = rest[end:]
	}
}

const jsonSpace = " \t\r\n"

// skip drops white space and separator from the front of s; strings.TrimLeft builds a set each time.
func skip(s string, separator byte) string {
	i := 0
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r' || s[i] == '\n' || s[i] == separator) {
		i++
	}
	return s[i:]
}

// valueEnd is the length of the valid JSON value that s begins with, white space behind a scalar
// included.
func valueEnd(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			i += stringEnd(s[i:]) - 1
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case ',':
			if depth == 0 {
				return i
			}
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// stringEnd is the length of the valid JSON string that s begins with.
func stringEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// unquote is the text of a valid JSON string.
func unquote(quoted string) string {
	plain := quoted[1 : len(quoted)-1]
	if strings.IndexByte(plain, '\\') < 0 {
		return plain
	}
	var s string
	if json.Unmarshal([]byte(quoted), &s) != nil { // cannot be: it is valid
		return plain
	}
	return s
}
