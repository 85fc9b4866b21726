package redact

import (
	"bytes"
	"regexp"
	"slices"
)

const (
	maxNameWords = 12  // of one name
	leastQuoted  = 6   // digits that a quoted number has at least
	maxAddress   = 200 // characters
	streetWords  = 16  // words and numbers of an address that nothing encloses
)

// expectation is the name that what stands before a word lets expect.
type expectation struct {
	words    int  // at least; 0 for none
	assigned bool // behind a sign that assigns: then small letters will do
	person   bool // behind a person's word or "nome"
}

// expectedAt returns what the words before the token i let expect.
func (r *reader) expectedAt(i int) (e expectation) {
	dashed, lined, half := false, false, false
	likely := r.tokens[i].class == given
	start := int(r.tokens[i].start)
	enclosed := likely && isOneOf(r.char(start-1), `"'(`) && r.char(start-2) == ' ' && isAlnum(r.char(start-3)) // in a sentence
	for j := i - 1; j >= 0 && i-j <= maxNameWords; j-- {
		g, t := r.tokens[j+1].gap, &r.tokens[j]
		if g&(hard|open|endTag|url) != 0 || g&(comma|closer) != 0 && !enclosed {
			break
		}
		e.assigned = e.assigned || g&sign != 0
		dashed = dashed || g&dash != 0 && !e.assigned
		if lined = (lined || g&line != 0) && !e.assigned; lined {
			break
		}
		if t.form == mark && t.kind == name && enclosed { // informado [NAME], cadastrado 'Maria'
			e.words, e.assigned = 1, true
			return e
		}
		if t.form == mark && t.kind != name && t.kind != secret {
			continue
		}
		if t.form != word || t.host {
			break
		}
		switch {
		case t.class == person, t.class == named, t.class == qualifier && t.kind == name && g&sign != 0:
			if t.size() <= 3 && j > 0 && r.tokens[j-1].class == house {
				return e
			}
			e.words, e.person = 1, true
			if dashed {
				e.words = 2
			}
			return e
		case t.class == vague, t.class == login, t.class == qualifier && t.kind == name, t.class == label && t.kind == birth:
			half = true
		case t.class == qualifier && t.kind == user && likely:
			half = true
		case enclosed && isSmall(r.Chars[t.start]) && !is(t.class, fields|setOf(quoting)), t.class == article, t.class == qualifier, t.class == label && t.kind == card: // "nome do titular do cartão"
		default:
			j = 0
		}
	}
	if half {
		e.words = 2
	}
	return e
}

// nameAt returns the name that begins with the word i, if one is expected.
func (r *reader) nameAt(i int) edit {
	t := &r.tokens[i]
	start := int(t.start)
	if !is(t.class, nameable) && !r.isInitial(i) || t.class == article || t.path || t.inner || r.char(start-1) == '_' {
		return edit{} // nomeArquivo, nome_arquivo
	}
	e := r.expectedAt(i)
	if e.words == 0 {
		return edit{}
	}
	if isSmall(r.Chars[start]) && !e.assigned {
		if !e.person || !r.isLowerName(i) {
			return edit{}
		}
		e.assigned, e.words = true, 1
	}
	if end := r.nameEnd(i, &e); end > 0 {
		return edit{start, end, name}
	}
	return edit{}
}

// nameEnd returns where the name that begins with the word i ends; 0 where none does.
func (r *reader) nameEnd(i int, e *expectation) int {
	listed := r.isOpened(int(r.tokens[i].start))
	end, words := 0, 0
	for range maxNameWords {
		p := r.partAt(i, words > 0)
		if p.bad || p.key || !p.capital && !p.particle && !e.assigned {
			break
		}
		if !p.particle {
			words++
			end = p.end
		}
		surname := e.person && e.assigned && words == 1 && p.capital // SMITH, JANE
		if i = p.next; !r.joins(&p, listed, surname) {
			break
		}
	}
	if words < e.words {
		return 0
	}
	return end
}

// part of a name: Maria, D'Ávila, Costa-Lima, J.
type part struct {
	end      int
	next     int // the token behind it
	capital  bool
	particle bool
	bad      bool // no part of a name
	key      bool // "=" follows
	initial  bool
}

// partAt returns the part that begins with the word i; later: behind another.
func (r *reader) partAt(i int, later bool) part {
	p := part{capital: !isSmall(r.Chars[r.tokens[i].start]), particle: true}
	for ; ; i++ {
		t := &r.tokens[i]
		p.initial = r.isInitial(i) || later && r.isMiddle(i)
		p.particle = p.particle && t.class == article
		p.end, p.next = int(t.end), i+1
		if !is(t.class, nameable) && !p.initial || t.form != word {
			p.bad = true
			return p
		}
		if i+1 == len(r.tokens) || r.tokens[i+1].form != word {
			break
		}
		next := &r.tokens[i+1]
		if between := int(next.start - t.end); between > 1 || between == 1 && !isOneOf(r.Chars[t.end], ".-'") {
			break
		}
	}
	c := r.char(p.end)
	p.bad, p.key = c == '_' || c == '@', c == '='
	return p
}

// isInitial recognises the "A." of "Maria A. Silva".
func (r *reader) isInitial(i int) bool {
	t := &r.tokens[i]
	return t.size() == 1 && !isSmall(r.Chars[t.start]) && r.char(int(t.end)) == '.'
}

// isMiddle recognises the initial of "JANE A not found".
func (r *reader) isMiddle(i int) bool {
	t := &r.tokens[i]
	return t.size() == 1 && !isSmall(r.Chars[t.start]) && r.char(int(t.end)) == ' ' && isSmall(r.char(int(t.end)+1))
}

// joins reports whether the next token goes on with the name of which p is a part: behind blanks ('+' in a form), a
// comma too if listed, or behind a surname.
func (r *reader) joins(p *part, listed, surname bool) bool {
	if p.next == len(r.tokens) || r.tokens[p.next].form != word {
		return false
	}
	blanks, start := 0, int(r.tokens[p.next].start)
	for i := p.end; i < start; i++ {
		switch c := r.Chars[i]; {
		case c == ' ' || c == '+':
			blanks++
		case c == '.' && p.initial && i == p.end:
		case c == ',' && (listed || surname && is(r.tokens[p.next].class, setOf(unknown, given)) && !isSmall(r.Chars[start])):
		default:
			return false
		}
	}
	return 0 < blanks && blanks <= maxGap
}

// isOpened reports whether a quotation mark or a tag stands right before i.
func (r *reader) isOpened(i int) bool {
	return isOneOf(r.char(i-1), `"'>`) || r.has(i-len("[CDATA["), "[CDATA[")
}

// isLowerName reports whether the words from i on, in small letters, are rather a name than a message: a given name,
// or two words of which none is known nor ends as words of messages do.
func (r *reader) isLowerName(i int) bool {
	for words := 0; i < len(r.tokens); i++ {
		t := &r.tokens[i]
		if t.form != word || words > 0 && t.gap&other != 0 {
			return false
		}
		if t.class == article && words > 0 {
			continue
		}
		if words == 0 && t.class == given {
			return true
		}
		if t.class != unknown && t.class != given || t.size() < 3 || r.endsAsMessage(t) {
			return false
		}
		if words++; words == 2 {
			return true
		}
	}
	return false
}

func (r *reader) endsAsMessage(t *token) bool {
	for n := min(5, t.size()); n > 1; n-- {
		if lexicon["-"+string(r.Chars[int(t.end)-n:t.end])].class == ending {
			return true
		}
	}
	return false
}

var (
	quoted = regexp.MustCompile(`^\w+[ :=]?(?:'([^'\n]{1,200})'|"([^"\n]{1,200})")`)
	field  = regexp.MustCompile(`(?i)^(?:[^\n;.]|\.[^ ]){0,200}?\b` +
		`(?:campo|field|elemento?|attribute|atributo|type|tipo|tag)[ :=]?['"]([^'"\n]{1,200})['"]`)
)

// quotedAt returns the value that the word i, "value" or "valor", says is quoted next, if its field is personal: The
// value 'MARIA' of element 'ans:nomeBeneficiario' is not valid.
func (r *reader) quotedAt(i int) edit {
	t := &r.tokens[i]
	if t.class != quoting || t.path {
		return edit{}
	}
	m := quoted.FindSubmatchIndex(r.Chars[t.start:])
	if m == nil {
		return edit{}
	}
	start, end := int(t.start)+max(m[2], m[4]), int(t.start)+max(m[3], m[5])
	k := none
	if m := field.FindSubmatchIndex(r.Chars[end+1:]); m != nil && !slices.ContainsFunc(r.Chars[end+1:end+1+m[0]], isMark) {
		k = r.fieldKind(end+1+m[2], end+1+m[3])
	}
	if !r.suits(start, end, k) {
		if k = r.fieldBefore(i); !r.suits(start, end, k) {
			return edit{}
		}
	}
	return edit{start, end, k}
}

// fieldBefore returns the kind of the label that stands some words before the token i.
func (r *reader) fieldBefore(i int) kind {
	for j := i - 1; j >= 0 && i-j <= 2*near; j-- {
		switch t := &r.tokens[j]; {
		case t.form == mark || is(t.class, keeping) && t.form == word:
			return none
		case t.form == word && is(t.class, setOf(label, named, person)):
			return t.kind
		}
	}
	return none
}

// fieldKind returns the kind of the field whose name is from start to end: st_CPF, numeroCarteira. Its namespace does
// not count.
func (r *reader) fieldKind(start, end int) kind {
	start += bytes.LastIndexAny(r.Chars[start:end], ":}") + 1
	k := none
	for i := start; i < end && (k == none || k == id); i++ {
		t := r.lookup(i)
		switch {
		case t.class == secretive:
			k = secret
		case is(t.class, setOf(label, named, person)):
			k = t.kind
		case is(t.class, keeping):
			return none
		}
		i = max(i, int(t.end)-1)
	}
	return k
}

// suits reports whether the characters from start to end may be a datum of kind k.
func (r *reader) suits(start, end int, k kind) bool {
	digits, letters := 0, false
	for i := start; i < end; i++ {
		switch looks[r.Chars[i]] {
		case isDigit:
			digits++
		case isLetter:
			letters = true
		}
	}
	switch k {
	case none:
		return false
	case secret:
		return !isNothing(r.Chars[start:end])
	case mail, address:
		return letters
	case name:
		t := r.lookup(start)
		return letters && (is(t.class, nameable) || looks[r.Chars[start]] != isLetter)
	}
	return digits >= min(leastQuoted, reaches[k].least)
}

// addressAt returns the address that the word i begins: all of what is quoted or tagged, or from a street's word on.
func (r *reader) addressAt(i int) edit {
	t := &r.tokens[i]
	start := int(t.start)
	enclosed, isStreet := r.isOpened(start), t.class == street && (t.size() > 1 || r.char(int(t.end)) == '.')
	assigned := t.gap&sign != 0 && t.size() > 1 && is(t.class, nameable) && !isSmall(r.Chars[start])
	if t.path || !enclosed && !isStreet && !assigned {
		return edit{}
	}
	if c := r.contextOf(i); c.label != address || !c.direct {
		return edit{}
	}
	if !enclosed {
		return edit{start, r.streetEnd(i), address}
	}
	closer := r.char(start - 1)
	if closer == '>' || closer == '[' {
		closer = '<'
	}
	for end := start; end < start+maxAddress; end++ {
		switch c := r.char(end); {
		case c == closer, c == ']' && closer == '<':
			return edit{start, end, address}
		case c == 0 || c == '\n' || isMark(c) || isOneOf(c, ":@["): // more than an address, or read before
			return edit{}
		}
	}
	return edit{}
}

// streetEnd returns where the address ends that begins with the word i: before what is no part of one.
func (r *reader) streetEnd(i int) int {
	end := r.tokens[i].end
	for words := 1; i+words < len(r.tokens) && words < streetWords; words++ {
		t := &r.tokens[i+words]
		if t.gap&(line|hard|closer|open|sign|endTag) != 0 || t.form == mark || t.form == word && !is(t.class, nameable) &&
			isSmall(r.Chars[t.start]) || t.class == label {
			break
		}
		end = t.end
	}
	return int(end)
}
