package redact

const (
	// near is how many words may stand between a label and its number where the number has the label's exact length.
	// Marks do not count, so a second reading counts the same.
	near = 8

	maxPrefix = 8 // letters before the digits of a number: MG-12.345.678
)

// context is what stands before a token.
type context struct {
	label  kind  // of the nearest label
	direct bool  // nothing but connecting words and punctuation stands behind it
	passed bool  // a number does
	words  int   // that do
	kept   class // keep, keepAll, engineKey, registry, company, filler: what the next number is instead
	since  int   // words behind that
}

// isPersons reports whether a label right before says that the number is a person's.
func (c *context) isPersons() bool {
	return c.direct && (c.label == cpf || c.label == id || c.label == record)
}

// ofNumber returns the context that a number has.
func (c context) ofNumber() context {
	isPassed := c.passed && (c.label == id || c.label == birth || c.label == record || c.label == address)
	if isPassed || c.isKept() {
		c.label = none
	}
	return c
}

// isKept reports whether the next number is nobody's.
func (c *context) isKept() bool { return c.kept == keep || c.kept == keepAll }

func (c *context) begin(k kind) {
	*c = context{label: k, direct: true}
}

// crosses takes account of what stands before the next token.
func (c *context) crosses(g gap) {
	switch {
	case g&endTag != 0:
		*c = context{}
	case g&(hard|closer) != 0, g&comma != 0 && c.kept != keepAll, g&(line|sign) == line && c.kept != company:
		c.kept = unknown
	}
	c.direct = c.direct && g&(hard|url) == 0
}

// meets takes account of the token i.
func (r *reader) meets(i int) {
	c, t := &r.context, &r.tokens[i]
	switch {
	case t.form == mark:
		c.kept = unknown
		switch t.kind {
		case name, mail:
		case card, birth: // "informada 123, cadastrada 124"
			c.begin(t.kind)
		case cpf, cns, phone:
			c.begin(t.kind)
			c.direct = false
		default:
			c.label = none
		}
	case t.form != word || t.host:
		c.direct, c.passed = false, true
		if c.kept != keepAll {
			c.kept = unknown
		}
	default:
		r.meetsWord(c, t, i)
	}
}

// meetsWord takes account of the word t, the token i: "CPF do paciente" is a CPF's label, "CPF/CNPJ" may be a company's.
func (r *reader) meetsWord(c *context, t *token, i int) {
	before := token{form: mark}
	if i > 0 {
		before = r.tokens[i-1]
	}
	isQuery := t.kind == id && isOneOf(r.char(int(t.start)-1), "?&") // ?numero=
	switch {
	case t.class == label && t.kind == cpf && before.class == company:
		c.begin(taxpayer)
		c.kept = company
		return
	case t.class == label:
		c.begin(t.kind)
		return
	case t.class == person && (c.label == none || !c.direct):
		c.begin(id)
		return
	case t.class == person:
		c.kept = unknown
		return
	case t.class == company && before.class == label && before.kind == cpf && t.gap&hard == 0:
		c.begin(taxpayer)
		c.kept = company
		return
	case is(t.class, keeping), t.class == company:
		c.kept, c.since = t.class, 0
	case t.class == filler && (t.kind == record || isQuery):
		if c.kept == unknown {
			c.kept, c.since = filler, 0
		}
		if isQuery {
			c.label = none
		}
	case !is(t.class, connecting) && t.class != paper && !r.isPrefix(t):
		c.kept = unknown
	default:
		c.since++
	}
	if c.kept == filler && c.since > 1 {
		c.kept = unknown
	}
	if t.class == health && c.label == card {
		c.label = cns
	}
	if c.words++; c.words > near {
		c.label = none
	}
	isAdjective := t.class == unknown && t.kind != none // carteirinha nova
	c.direct = c.direct && (is(t.class, connecting) || isAdjective || r.isPrefix(t))
}

// isMoney reports whether a currency's sign stands right before the token i.
func (r *reader) isMoney(i int) bool {
	t := &r.tokens[i]
	j := int(t.start) - 1
	for r.char(j) == ' ' {
		j--
	}
	return r.char(j) == '$' || i > 0 && t.gap == 0 && r.tokens[i-1].class == currency
}

// isPrefix reports whether t is the letters of a number: MG-12.345.678.
func (r *reader) isPrefix(t *token) bool {
	next := int(t.end)
	if r.char(next) == '-' {
		next++
	}
	return t.class == unknown && t.size() <= maxPrefix && looks[r.char(next)] == isDigit
}
