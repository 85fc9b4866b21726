// Package feel parses and evaluates the part of FEEL, BPMN's expression language, that the development engine supports:
// null, true, false, text, numbers, names and paths, = != < <= > >=, and, or, not(), + - * /, if then else, contexts
// and lists. Parsing refuses everything else.
package feel

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Raw is a value as JSON text, such as that of a process variable.
type Raw string

// Expression is a parsed expression. It is immutable and safe for concurrent use.
type Expression struct {
	text string
	root node
}

// String returns the expression as written, without its leading =.
func (e *Expression) String() string { return e.text }

// Eval returns the value of the expression. lookup returns a variable and reports whether it exists. A missing variable
// is null, and so is what cannot be computed, such as a number plus a text.
func (e *Expression) Eval(lookup func(name string) (Raw, bool)) Raw {
	return encode(e.root.eval(lookup))
}

// A value is nil, a bool, a string, a *big.Rat, a []value, a map[string]value, or a Raw that is not decoded yet.
type value any

type scope func(name string) (Raw, bool)

type node interface{ eval(scope) value }

type (
	constant struct{ value }
	name     string
	path     struct {
		of   node
		name string
	}
	choice struct{ condition, then, otherwise node }
	not    struct{ of node }
	binary struct {
		operator    string
		left, right node
	}
	list    []node
	context []struct {
		name string
		of   node
	}
)

func (n constant) eval(scope) value { return n.value }

func (n name) eval(s scope) value {
	if raw, there := s(string(n)); there {
		return raw
	}
	return nil
}

func (n path) eval(s scope) value { return member(n.of.eval(s), n.name) }

// member returns a context's entry, or the list of its items' entries for a list.
func member(of value, name string) value {
	switch v := decode(of).(type) {
	case map[string]value:
		return v[name]
	case []value:
		all := make([]value, len(v))
		for i := range v {
			all[i] = member(v[i], name)
		}
		return all
	}
	return nil
}

func (n choice) eval(s scope) value {
	if decode(n.condition.eval(s)) == true {
		return n.then.eval(s)
	}
	return n.otherwise.eval(s)
}

func (n not) eval(s scope) value {
	if b, is := decode(n.of.eval(s)).(bool); is {
		return !b
	}
	return nil
}

func (n list) eval(s scope) value {
	all := make([]value, len(n))
	for i, item := range n {
		all[i] = item.eval(s)
	}
	return all
}

func (n context) eval(s scope) value {
	all := make(map[string]value, len(n))
	for _, entry := range n {
		all[entry.name] = entry.of.eval(s)
	}
	return all
}

func (n binary) eval(s scope) value {
	left, right := decode(n.left.eval(s)), decode(n.right.eval(s))
	switch n.operator {
	case "and":
		return ternary(left, right, false)
	case "or":
		return ternary(left, right, true)
	case "=", "!=":
		same, comparable := equal(left, right)
		if !comparable {
			return nil
		}
		return same == (n.operator == "=")
	case "<", "<=", ">", ">=":
		return ordered(n.operator, left, right)
	}
	return computed(n.operator, left, right)
}

// ternary returns the result of FEEL's three-valued logic. One decisive operand decides, whatever the other is.
func ternary(left, right value, decisive bool) value {
	switch {
	case left == decisive || right == decisive:
		return decisive
	case left == !decisive && right == !decisive:
		return !decisive
	}
	return nil
}

// equal reports whether two values are equal, and whether they are comparable: of one type, or one of them null.
func equal(left, right value) (same, comparable bool) {
	left, right = decode(left), decode(right)
	if left == nil || right == nil {
		return left == right, true
	}
	switch l := left.(type) {
	case bool:
		r, is := right.(bool)
		return l == r, is
	case string:
		r, is := right.(string)
		return l == r, is
	case *big.Rat:
		r, is := right.(*big.Rat)
		return is && l.Cmp(r) == 0, is
	case []value:
		r, is := right.([]value)
		return is && slices.EqualFunc(l, r, areEqual), is
	case map[string]value:
		r, is := right.(map[string]value)
		if !is || len(l) != len(r) {
			return false, is
		}
		for name, item := range l {
			if other, there := r[name]; !there || !areEqual(item, other) {
				return false, true
			}
		}
		return true, true
	}
	return false, false
}

func areEqual(a, b value) bool {
	same, _ := equal(a, b)
	return same
}

func ordered(operator string, left, right value) value {
	order := 0
	switch l := left.(type) {
	case *big.Rat:
		r, is := right.(*big.Rat)
		if !is {
			return nil
		}
		order = l.Cmp(r)
	case string:
		r, is := right.(string)
		if !is {
			return nil
		}
		order = strings.Compare(l, r)
	default:
		return nil
	}
	switch operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func computed(operator string, left, right value) value {
	if l, is := left.(string); is {
		if r, is := right.(string); is && operator == "+" {
			return l + r
		}
		return nil
	}
	l, leftIs := left.(*big.Rat)
	r, rightIs := right.(*big.Rat)
	if !leftIs || !rightIs {
		return nil
	}
	result := new(big.Rat)
	switch operator {
	case "+":
		result.Add(l, r)
	case "-":
		result.Sub(l, r)
	case "*":
		result.Mul(l, r)
	case "/":
		if r.Sign() == 0 {
			return nil
		}
		result.Quo(l, r)
	}
	return result
}

// decode decodes a Raw, one level deep.
func decode(v value) value {
	raw, is := v.(Raw)
	if !is {
		return v
	}
	text := strings.TrimLeft(string(raw), " \t\r\n")
	if text == "" {
		return nil
	}
	switch text[0] {
	case 'n':
		return nil
	case 't', 'f':
		return text[0] == 't'
	case '"':
		var s string
		_ = json.Unmarshal([]byte(text), &s) // a Raw is valid JSON
		return s
	case '[':
		var items []json.RawMessage
		_ = json.Unmarshal([]byte(text), &items)
		all := make([]value, len(items))
		for i := range items {
			all[i] = Raw(items[i])
		}
		return all
	case '{':
		var members map[string]json.RawMessage
		_ = json.Unmarshal([]byte(text), &members)
		all := make(map[string]value, len(members))
		for name := range members {
			all[name] = Raw(members[name])
		}
		return all
	}
	if n, ok := number(strings.TrimSpace(text)); ok {
		return n
	}
	return nil
}

// number parses a decimal number of reasonable size. A huge exponent would cost as many digits.
func number(text string) (*big.Rat, bool) {
	const most = 400
	if len(text) > most {
		return nil, false
	}
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		if exponent, err := strconv.Atoi(text[at+1:]); err != nil || exponent < -most || exponent > most {
			return nil, false
		}
	}
	return new(big.Rat).SetString(text)
}

// digits is how many decimals a number is written with, as FEEL has.
const digits = 34

func encode(v value) Raw {
	switch v := v.(type) {
	case nil:
		return "null"
	case Raw:
		return v
	case bool:
		return Raw(strconv.FormatBool(v))
	case string:
		return Text(v)
	case *big.Rat:
		if v.IsInt() {
			return Raw(v.Num().String())
		}
		return Raw(strings.TrimSuffix(strings.TrimRight(v.FloatString(digits), "0"), "."))
	case []value:
		items := make([]string, len(v))
		for i := range v {
			items[i] = string(encode(v[i]))
		}
		return Raw("[" + strings.Join(items, ",") + "]")
	case map[string]value:
		members := make([]string, 0, len(v))
		for name, item := range v {
			members = append(members, string(Text(name))+":"+string(encode(item)))
		}
		slices.Sort(members)
		return Raw("{" + strings.Join(members, ",") + "}")
	}
	return "null"
}

// Text returns the JSON of a text.
func Text(s string) Raw {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // cannot fail for a text
	return Raw(strings.TrimSuffix(b.String(), "\n"))
}

// Kind returns the type of a value in the words of an incident: "NULL", "BOOLEAN", "STRING", "NUMBER", "ARRAY" or
// "OBJECT".
func (r Raw) Kind() string {
	switch decode(r).(type) {
	case bool:
		return "BOOLEAN"
	case string:
		return "STRING"
	case *big.Rat:
		return "NUMBER"
	case []value:
		return "ARRAY"
	case map[string]value:
		return "OBJECT"
	}
	return "NULL"
}

// String returns the text that r encodes, or r itself if it is no text.
func (r Raw) String() string {
	if s, is := decode(r).(string); is {
		return s
	}
	return string(r)
}
