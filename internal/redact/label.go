package redact

const (
	// near is how many words may stand between a label and a number of exactly the label's length. Marks do not count,
	// so that a second reading counts the same.
	near = 8

	maxPrefix = 8 // letters before the digits of a number: MG-12.345.678
)

// context is what stands before a number.
type context struct {
	label  kind  // of the nearest label
	direct bool  // only connecting words and punctuation stand behind the label
	words  int   // behind the label
	kept   class // of the last word that makes the next number nobody's: keepOne, company, counter; 0 for none
	since  int   // words behind the kept one
	signed bool  // an assigning sign stands behind the last word
}

// isPersons reports whether a label right before says that the number is a person's.
func (c *context) isPersons() bool {
	return c.direct && (c.label == cpf || c.label == id || c.label == record)
}

// isKept reports whether the next number is a document's, which stays.
func (c *context) isKept() bool { return c.kept == keepOne || c.kept == keepAll }

func (c *context) begin(k kind) { *c = context{label: k, direct: true} }

// crosses updates c for a sign. What kept says ends with its line, unless a sign assigns.
func (c *context) crosses(sign class) {
	switch {
	case sign == ' ':
	case sign == endTag:
		*c = context{}
	case is(sign, hard), is(sign, ")]}|"), sign == ',' && c.kept != keepAll:
		c.kept = 0
		c.direct = c.direct && !is(sign, hard)
	case sign == '\n' && !c.signed && c.kept != company:
		c.kept = 0
	case is(sign, assigning):
		c.signed = true
	}
}

// meets updates the context for the token i: a word, a number or a mark.
func (r *reader) meets(i int) {
	c, t := &r.context, &r.tokens[i]
	c.signed = false
	switch class := r.classes[i]; {
	case r.isWord(i):
		r.meetsWord(c, i)
	case is(class, numberish):
		if c.direct = false; kinds[c.label].nearMost == 0 {
			c.label = none
		}
		if c.kept != keepAll {
			c.kept = 0
		}
	default:
		c.kept = 0
		switch t.kind {
		case name, mail:
		case card, birth: // "informada 123, cadastrada 124"
			next := r.class(i + 1)
			if c.label = none; !is(next, "\"'|") && (next != ',' || r.class(i+2) == ' ') { // not where cells are
				c.begin(t.kind)
			}
		case cpf, cns, phone:
			c.begin(t.kind)
			c.direct = false
		default:
			c.label = none
		}
	}
}

// meetsWord updates c for the word i: "CPF do paciente" is a CPF's label, "CPF/CNPJ" may be a company's.
func (r *reader) meetsWord(c *context, i int) {
	class, k := r.classes[i], r.tokens[i].kind
	isQuery := class == 'n' && is(r.char(r.start(i)-1), "?&") // ?numero=
	switch {
	case class == company && c.direct && c.label == cpf, k == cpf && r.class(r.before(i)) == company:
		*c = context{label: taxpayer, direct: true, kept: company}
		return
	case is(class, labels):
		c.begin(k)
		return
	case class == person && !c.direct:
		c.begin(id)
		return
	case class == person:
		c.kept = 0
		return
	case is(class, keeping), class == company, class == offset, (class == counter || isQuery) && c.kept == 0:
		c.kept, c.since = class, 0
		if isQuery {
			c.kept = counter
		}
	case is(class, counting):
	case !connects[class] && class != paper && !r.isPrefix(i) && !(c.kept == keepOne && r.isPurpose(i)):
		c.kept = 0
	default:
		c.since++
	}
	if is(c.kept, counting) && c.since > 1 {
		c.kept = 0
	}
	if class == health && c.label == card {
		c.label = cns
	}
	if c.words++; c.words > near || isQuery || is(class, counting) && c.label == birth { // that number is no date
		c.label = none
	}
	isAdjective := is(class, "uU") && k != none   // carteirinha nova
	isPapers := class == paper && c.label == card // carteira do plano
	c.direct = c.direct && (connects[class] || isAdjective || isPapers || r.isPrefix(i))
}

// isMoney reports whether a currency's sign or code stands right before the token i.
func (r *reader) isMoney(i int) bool {
	return r.isBehind(i, "$") || r.class(i-1) == currency || r.class(i-1) == ' ' && r.class(i-2) == currency
}

// isPrefix reports whether the word i is the letters of a number: MG-12.345.678.
func (r *reader) isPrefix(i int) bool {
	next := r.end(i)
	if r.char(next) == '-' {
		next++
	}
	return is(r.classes[i], strange) && r.size(i) <= maxPrefix && looks[r.char(next)] == isDigit
}

// isPurpose reports whether the word i says what a document is for, before the document's number: protocolo de
// recebimento: 1.
func (r *reader) isPurpose(i int) bool {
	v, w := r.Chars[r.start(i):r.end(i)], r.entry(r.start(i), r.end(i))
	return r.class(i+1) == ':' && r.class(r.before(i)) == article &&
		(w.class == stop || w.class == unknown && (isSmall(v[0]) || endsAsMessage(v)))
}
