package redact

const (
	// near is how many words may stand between a label and its number where the number has the label's exact length.
	// Marks do not count, so a second reading counts the same.
	near = 8

	maxBack   = 64 // tokens that are looked at before a number
	maxPrefix = 8  // letters before the digits of a number: MG-12.345.678
)

// context is what stands before a number.
type context struct {
	label  kind  // of the nearest label
	direct bool  // nothing but connecting words and punctuation stands between
	kept   class // keep, keepAll, engineKey, registry, company, filler: what the number is instead
	money  bool
}

// isPersons reports whether a label right before says that the number is a person's.
func (c *context) isPersons() bool {
	return c.direct && (c.label == cpf || c.label == id || c.label == record)
}

// search goes back from a number to its context.
type search struct {
	context
	one, list bool // a word for what stays may still rule: the number alone, or those of a list
	lined     bool // a line's end stands between, and as yet nothing that assigns before it
	passed    bool // a number stands between
	health    bool
	person    bool // met, and perhaps a label's: "CPF do paciente"
	persons   bool // whether the person stands right before
	words     int
}

// contextOf returns the context of the number i.
func (r *reader) contextOf(i int) context {
	s := search{context: context{direct: true}, one: true, list: true}
	s.money = r.isMoney(i)
	for j := i - 1; j >= max(0, i-maxBack); j-- {
		g := r.tokens[j+1].gap
		if g&endTag != 0 || !s.crosses(g) && s.person || s.meets(r, i, j) {
			break
		}
	}
	if s.person && s.label == none {
		s.label, s.direct = id, s.persons
	}
	if s.passed && (s.label == id || s.label == birth || s.label == record || s.label == address) {
		s.label = none
	}
	return s.context
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

// crosses takes account of what stands between two tokens, and reports whether a label before it is still direct.
func (s *search) crosses(g gap) bool {
	switch {
	case g&sign != 0:
		s.lined = false
	case g&line != 0:
		s.lined = true
	}
	if g&hard != 0 {
		s.direct, s.one, s.list = false, false, false
	}
	if g&closer != 0 {
		s.one, s.list = false, false
	}
	s.one = s.one && g&comma == 0
	s.direct = s.direct && g&url == 0
	return s.direct
}

// meets takes account of the token j, and reports whether it settles the context of i.
func (s *search) meets(r *reader, i, j int) bool {
	t := &r.tokens[j]
	switch t.form {
	case mark:
		return s.meetsMark(t.kind)
	case word:
		if t.host {
			break
		}
		return s.meetsWord(r, i, j)
	}
	s.direct, s.one, s.passed = false, false, s.passed || !s.person
	return s.person
}

func (s *search) meetsMark(k kind) bool {
	s.one, s.list = false, false
	switch k {
	case name, mail:
		return false
	case card, birth: // "informada 123, cadastrada 124"
		if !s.person || s.direct {
			s.label, s.direct = k, s.direct && (!s.person || s.persons)
		}
	case cpf, cns, phone:
		if !s.person {
			s.label, s.direct = k, false
		}
	}
	return true
}

func (s *search) meetsWord(r *reader, i, j int) bool {
	t := &r.tokens[j]
	switch t.class {
	case label:
		return s.meetsLabel(r, j)
	case person:
		if !s.person {
			s.person, s.persons, s.direct = true, s.direct, true
		}
		s.one, s.list = false, false
		return false
	case keep, keepAll, engineKey, registry:
		if (s.one || s.list && t.class == keepAll) && !s.lined && s.kept == unknown {
			if s.kept = t.class; t.class == keep || t.class == keepAll {
				return true
			}
		}
		s.one, s.list = false, false
	case company:
		if s.one && s.kept == unknown {
			s.kept = company
		}
		s.one, s.list = false, false
		if j > 0 && r.tokens[j-1].kind == cpf && r.tokens[j-1].class == label && r.tokens[j].gap&hard == 0 {
			s.label, s.direct, s.person = taxpayer, true, false
			return true
		}
	}
	isQuery := t.kind == id && isOneOf(r.char(int(t.start)-1), "?&") // ?numero=
	if t.class == filler && (t.kind == record || isQuery) && s.one && s.words < 2 {
		s.kept = filler
		if isQuery {
			return true
		}
	}
	s.health = s.health || t.class == health
	if s.words++; s.words > near || s.person && !is(t.class, connecting) {
		return true
	}
	if j == i-1 && r.isPrefix(t) {
		return false
	}
	s.direct = s.direct && is(t.class, connecting)
	if !is(t.class, connecting) && t.class != paper {
		s.one, s.list = false, false
	}
	return false
}

// meetsLabel: "CPF do paciente" is a CPF's label, "CPF/CNPJ" may be a company's.
func (s *search) meetsLabel(r *reader, j int) bool {
	t := &r.tokens[j]
	if s.person && !s.direct {
		return true
	}
	s.label = t.kind
	if s.person {
		s.direct, s.person = s.persons, false
	}
	switch {
	case t.kind == card && s.health:
		s.label = cns
	case t.kind == cpf && j > 0 && r.tokens[j-1].class == company:
		s.label, s.kept = taxpayer, company
	}
	return true
}

// isPrefix reports whether t is the letters of a number: MG-12.345.678.
func (r *reader) isPrefix(t *token) bool {
	next := int(t.end)
	if r.char(next) == '-' {
		next++
	}
	return t.class == unknown && t.size() <= maxPrefix && looks[r.char(next)] == isDigit
}
