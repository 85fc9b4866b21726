package feel

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"text/scanner"
)

const (
	// longest is the longest expression, in bytes; deepest is the deepest nesting.
	longest = 32 << 10
	deepest = 200
)

// Parse parses an expression without its leading =. The error names the place of what the development engine does not
// support.
func Parse(text string) (*Expression, error) {
	text = strings.TrimSpace(text)
	if len(text) > longest {
		return nil, fmt.Errorf("it has %d bytes, at most %d are expected", len(text), longest)
	}
	p := &parser{}
	p.Init(strings.NewReader(text))
	p.Mode = scanner.ScanIdents | scanner.ScanFloats | scanner.ScanStrings
	p.Error = func(_ *scanner.Scanner, what string) { p.fail("%s", what) }
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

// parser parses one expression by recursive descent. After an error it only sees the end of the text.
type parser struct {
	scanner.Scanner
	kind  rune   // of the current token: a kind of scanner's, or the character itself
	token string // empty at the end
	depth int
	err   error
}

// reserved words cannot be names.
var reserved = []string{"if", "then", "else", "and", "or", "not", "true", "false", "null", "for", "return", "some", "every",
	"satisfies", "in", "between", "instance", "of", "function"}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.kind, p.token = scanner.EOF, ""
}

func (p *parser) unexpected(expected string) {
	found := "the end"
	if p.token != "" {
		found = fmt.Sprintf("%q at character %d", p.token, p.Position.Column)
	}
	p.fail("found %s, expected %s (the development engine knows a part of FEEL)", found, expected)
}

// next reads a token.
func (p *parser) next() {
	p.kind = p.Scan()
	p.token = p.TokenText()
	if next := p.Peek(); next == '=' && strings.ContainsRune("!<>", p.kind) || next == p.kind && strings.ContainsRune(".*", next) {
		p.token += string(p.Next())
	}
	if p.err != nil {
		p.kind, p.token = scanner.EOF, ""
	}
}

// take skips the current token if it is token, and reports whether it was.
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

// levels holds the binary operators, the weakest first.
var levels = [][]string{{"or"}, {"and"}, {"=", "!=", "<", "<=", ">", ">="}, {"+", "-"}, {"*", "/"}}

// comparing is the level whose operators cannot be chained.
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

// operand reads a value and the path after it.
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
	if p.kind != scanner.Ident || slices.Contains(reserved, name) {
		p.unexpected("a name")
	}
	p.next()
	return name
}

func (p *parser) primary() node {
	token := p.token
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
	case p.kind == scanner.String:
		return constant{p.quoted()}
	case p.kind == scanner.Int || p.kind == scanner.Float:
		n, ok := number(token)
		if !ok || strings.Trim(token, "0123456789.") != "" {
			p.fail("%.20q is no decimal number of at most 400 digits", token)
		}
		p.next()
		return constant{n}
	}
	return name(p.name())
}

func (p *parser) quoted() string {
	var s string
	if err := json.Unmarshal([]byte(p.token), &s); err != nil {
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
		if p.kind == scanner.String {
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
