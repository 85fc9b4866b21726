package feel

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// longest expression, in bytes, and deepest nesting that is parsed.
	longest = 32 << 10
	deepest = 200
)

// Parse parses an expression, given without the sign = before it. The error says where something stands that the
// development engine does not know.
func Parse(text string) (*Expression, error) {
	text = strings.TrimSpace(text)
	if len(text) > longest {
		return nil, fmt.Errorf("it has %d bytes, at most %d are expected", len(text), longest)
	}
	p := &parser{rest: text, text: text}
	p.next()
	root := p.expression()
	if p.err == nil && p.token != "" {
		p.unexpected("the end")
	}
	if p.err != nil {
		return nil, p.err
	}
	return &Expression{text, root}, nil
}

// parser of one expression, by recursive descent. After an error it goes through the motions.
type parser struct {
	text, rest string
	token      string // the current one; empty at the end
	depth      int
	err        error
}

// reserved words are no names.
var reserved = []string{"if", "then", "else", "and", "or", "not", "true", "false", "null", "for", "return", "some", "every",
	"satisfies", "in", "between", "instance", "of", "function"}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.token, p.rest = "", ""
}

func (p *parser) unexpected(expected string) {
	found := "the end"
	if p.token != "" {
		found = fmt.Sprintf("%q at character %d", p.token, utf8.RuneCountInString(p.text[:len(p.text)-len(p.rest)-len(p.token)])+1)
	}
	p.fail("found %s, expected %s (the development engine knows a part of FEEL)", found, expected)
}

// next reads a token.
func (p *parser) next() {
	p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
	n := tokenLength(p.rest)
	p.token, p.rest = p.rest[:n], p.rest[n:]
	if p.token == `"` {
		p.fail("a text has no end: %q is missing", `"`)
	}
}

func tokenLength(s string) int {
	if s == "" {
		return 0
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == '"':
		return textLength(s)
	case isNameStart(r):
		return lengthWhile(s, func(r rune) bool { return isNameStart(r) || unicode.IsDigit(r) })
	case r >= '0' && r <= '9':
		n := lengthWhile(s, isDigit)
		if fraction := lengthWhile(s[min(n+1, len(s)):], isDigit); n < len(s) && s[n] == '.' && fraction > 0 {
			n += 1 + fraction
		}
		return n
	case strings.HasPrefix(s, "!="), strings.HasPrefix(s, "<="), strings.HasPrefix(s, ">="), strings.HasPrefix(s, ".."), strings.HasPrefix(s, "**"):
		return 2
	}
	return size
}

// textLength returns the length of a text with its signs ", or 1 where the second is missing.
func textLength(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 1
}

func isNameStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }
func isDigit(r rune) bool     { return r >= '0' && r <= '9' }

func lengthWhile(s string, is func(rune) bool) int {
	if n := strings.IndexFunc(s, func(r rune) bool { return !is(r) }); n >= 0 {
		return n
	}
	return len(s)
}

// take skips a token where it is the current one, and reports whether it was.
func (p *parser) take(token string) bool {
	if p.err != nil || p.token != token {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(token string) {
	if !p.take(token) {
		p.unexpected(fmt.Sprintf("%q", token))
	}
}

func (p *parser) expression() node {
	if p.depth++; p.depth > deepest {
		p.fail("it is nested more than %d deep", deepest)
	}
	defer func() { p.depth-- }()
	if !p.take("if") {
		return p.level(0)
	}
	condition := p.expression()
	p.expect("then")
	then := p.expression()
	p.expect("else")
	return choice{condition, then, p.expression()}
}

// levels are the operators of two operands, those that bind weakest first.
var levels = [][]string{{"or"}, {"and"}, {"=", "!=", "<", "<=", ">", ">="}, {"+", "-"}, {"*", "/"}}

// comparing is the level of which one operator stands at a time.
const comparing = 2

func (p *parser) level(n int) node {
	if n == len(levels) {
		return p.operand()
	}
	left := p.level(n + 1)
	for p.err == nil && slices.Contains(levels[n], p.token) {
		operator := p.token
		p.next()
		left = binary{operator, left, p.level(n + 1)}
		if n == comparing {
			break
		}
	}
	return left
}

// operand reads a value and the path behind it.
func (p *parser) operand() node {
	if p.take("-") {
		return binary{"-", constant{new(big.Rat)}, p.operand()}
	}
	n := p.primary()
	for p.take(".") {
		n = path{n, p.name()}
	}
	return n
}

func (p *parser) name() string {
	name := p.token
	if r, _ := utf8.DecodeRuneInString(name); !isNameStart(r) || slices.Contains(reserved, name) {
		p.unexpected("a name")
	}
	p.next()
	return name
}

func (p *parser) primary() node {
	token := p.token
	r, _ := utf8.DecodeRuneInString(token)
	switch {
	case p.take("null"):
		return constant{nil}
	case p.take("true"), p.take("false"):
		return constant{token == "true"}
	case p.take("not"):
		p.expect("(")
		n := not{p.expression()}
		p.expect(")")
		return n
	case p.take("("):
		n := p.expression()
		p.expect(")")
		return n
	case p.take("["):
		return p.list()
	case p.take("{"):
		return p.context()
	case r == '"':
		return constant{p.quoted()}
	case isDigit(r) && token != "":
		n, ok := number(token)
		if !ok {
			p.fail("%.20s… is too long for a number", token)
		}
		p.next()
		return constant{n}
	}
	return name(p.name())
}

func (p *parser) quoted() string {
	var s string
	if err := json.Unmarshal([]byte(strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(p.token)), &s); err != nil {
		p.fail("%s is no text as FEEL writes one", p.token)
	}
	p.next()
	return s
}

func (p *parser) list() node {
	items := list{}
	for !p.take("]") && p.err == nil {
		items = append(items, p.expression())
		if p.token != "]" {
			p.expect(",")
		}
	}
	return items
}

func (p *parser) context() node {
	var entries context
	for !p.take("}") && p.err == nil {
		key := p.token
		if strings.HasPrefix(key, `"`) {
			key = p.quoted()
		} else {
			p.name()
		}
		p.expect(":")
		entries = append(entries, struct {
			name string
			of   node
		}{key, p.expression()})
		if p.token != "}" {
			p.expect(",")
		}
	}
	return entries
}
