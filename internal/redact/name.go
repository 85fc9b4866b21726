package redact

import (
	"bytes"
	"regexp"
)

const (
	maxNameWords = 12  // of one name
	maxQuoted    = 220 // characters of a word and a quoted value, and to the name of its element
	leastQuoted  = 4   // digits that a quoted number has at least
	maxAddress   = 200 // characters
	streetWords  = 16  // words and numbers of an address that nothing encloses
)

// expectation is the name that what stands before a word lets expect.
type expectation struct {
	words    int  // at least; 0 for none
	assigned bool // behind a sign that assigns: then small letters will do
	dashed   bool // behind a hyphen, and no such sign
	person   bool // behind a person's word or "nome"
	given    bool // the word is a given name
	enclosed bool // it stands in quotation marks or parentheses in a sentence
	capital  bool
	titled   bool // one capital, then small letters
	indented bool // on the line below
	filled   bool // behind "informado" and the like
}

// expectedAt returns what the words before the token i let expect.
func (r *reader) expectedAt(i int) expectation {
	start := int(r.tokens[i].start)
	e := expectation{given: r.tokens[i].class == given, capital: !isSmall(r.Chars[start])}
	e.titled = e.capital && isSmall(r.char(start+1))
	e.enclosed = isOneOf(r.char(start-1), `"'(`) && r.char(start-2) == ' ' && isAlnum(r.char(start-3))
	for j := i - 1; j >= 0 && i-j <= maxNameWords; j-- {
		if g := r.tokens[j+1].gap; !e.crosses(g) || e.meets(r, j, g) {
			break
		}
	}
	return e
}

// crosses takes account of what stands between two tokens, and reports whether a label may stand before it.
func (e *expectation) crosses(g gap) bool {
	e.assigned = e.assigned || g&sign != 0
	e.dashed = (e.dashed || g&dash != 0) && !e.assigned
	e.indented = e.indented || g&indent != 0
	return g&(hard|open|endTag|url) == 0 && (g&(comma|closer) == 0 || e.enclosed && e.given) &&
		(g&line == 0 || e.assigned || g&indent != 0)
}

// meets takes account of the token j, before the gap g, and reports whether it settles what is expected.
func (e *expectation) meets(r *reader, j int, g gap) bool {
	t := &r.tokens[j]
	isKin := t.class == qualifier && t.kind == name
	switch {
	case t.form == mark:
		if t.kind == name && e.enclosed && e.given { // informado [NAME], cadastrado 'Maria'
			e.words, e.assigned = 1, true
		}
		return t.kind == name || t.kind == secret
	case t.form != word || t.host:
		return true
	case e.indented && r.tokens[j].gap&(line|sign) == 0 && j > 0 && is(t.class, setOf(person, named)):
		return true // a line that ends with a label, and is none
	case t.class == person, t.class == named, isKin && g&(sign|indent) != 0 && !e.filled:
		e.words, e.person = 1, true
		if e.dashed {
			e.words = 2
		}
		if t.size() <= maxShort && j > 0 && r.tokens[j-1].class == house {
			e.words = 0
		}
		return true
	case t.class == qualifier && (t.kind == id && (e.capital || e.given) || isKin && e.titled): // staff
		if e.words = 2; e.given && e.assigned {
			e.words = 1
		}
	case e.filled && is(t.class, setOf(vague, login)):
		return true
	case t.class == vague, t.class == login, t.class == label && t.kind == birth,
		e.given && t.class == qualifier && (isKin || t.kind == user):
		e.words = 2
	case t.class == article, t.class == qualifier, t.class == label && t.kind == card: // "nome do titular do cartão"
	case e.enclosed && t.class == filler:
		e.filled = true
	case e.enclosed && e.given && isSmall(r.Chars[t.start]) && !is(t.class, fields|setOf(quoting)):
	default:
		return true
	}
	return false
}

// nameAt returns the name that begins with the word i, if one is expected.
func (r *reader) nameAt(i int) edit {
	t := &r.tokens[i]
	start := int(t.start)
	if !is(t.class, nameable) && !r.isInitial(i) || t.class == article || t.path || isAlnum(r.char(start-1)) ||
		isMark(r.char(start-1)) || r.char(start-1) == '_' {
		return edit{} // nomeArquivo, nome_arquivo
	}
	e := r.expectedAt(i)
	if e.words == 0 {
		return r.surnameFirstAt(i)
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
		surname := e.person && e.assigned && p.capital && !(e.given && words > 1) // SMITH, JANE
		if i = p.next; !r.joins(&p, listed, surname, words == 1) {
			break
		}
	}
	if words < e.words {
		return 0
	}
	return end
}

var surnameFirst = regexp.MustCompile(`^[A-Z\x{fffd}]{2,}(?: [A-Z\x{fffd}]{2,}){0,3}, ` +
	`[A-Z\x{fffd}]{2,}(?: [A-Z\x{fffd}]+){0,4}`)

// surnameFirstAt returns the name that the word i begins without a label: ERRO: SOUZA, ANA MARIA | guia 1.
func (r *reader) surnameFirstAt(i int) edit {
	start, isGiven := int(r.tokens[i].start), false
	if r.tokens[i].gap&(sign|line) == 0 {
		return edit{}
	}
	end := start + len(surnameFirst.Find(r.Chars[start:min(len(r.Chars), start+maxQuoted)]))
	for ; i < len(r.tokens) && int(r.tokens[i].start) < end; i++ {
		t := &r.tokens[i]
		if !is(t.class, nameable) {
			return edit{}
		}
		isGiven = isGiven || t.gap&comma != 0 && t.class == given
	}
	if !isGiven {
		return edit{}
	}
	return edit{start, end, name}
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
	p.bad, p.key = c == '_' || c == '@', c == '=' || c == ':' && !p.capital
	return p
}

// isInitial recognises the "A." of "Maria A. Silva".
func (r *reader) isInitial(i int) bool {
	t := &r.tokens[i]
	return t.size() == 1 && (!isSmall(r.Chars[t.start]) || t.class == unknown) && r.char(int(t.end)) == '.'
}

// isMiddle recognises the initial of "JANE A not found".
func (r *reader) isMiddle(i int) bool {
	t := &r.tokens[i]
	return t.size() == 1 && !isSmall(r.Chars[t.start]) && r.char(int(t.end)) == ' ' && isSmall(r.char(int(t.end)+1))
}

// joins reports whether the next token goes on with the name of which p is a part: behind blanks ('+' in a form), a
// comma too if listed, or behind a surname.
func (r *reader) joins(p *part, listed, surname, first bool) bool {
	if p.next == len(r.tokens) || r.tokens[p.next].form != word {
		return false
	}
	t := &r.tokens[p.next]
	blanks, start := 0, int(t.start)
	surname = surname && !isSmall(r.Chars[start]) &&
		(t.class == given || t.class == unknown && (first || !isSmall(r.Chars[p.end-1]) && !isSmall(r.Chars[t.end-1])))
	for i := p.end; i < start; i++ {
		switch c := r.Chars[i]; {
		case c == ' ' || c == '+':
			blanks++
		case c == '.' && p.initial && i == p.end:
		case c == ',' && (listed || surname):
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

var quoted = regexp.MustCompile(`^\w+[ :=]?(?:'([^'\n]+)'|"([^"\n]+)")`)

// quotedBehind returns what is quoted right behind the word t.
func (r *reader) quotedBehind(t *token) (start, end int) {
	m := quoted.FindSubmatchIndex(r.Chars[t.start:min(len(r.Chars), int(t.start)+maxQuoted)])
	if m == nil {
		return 0, 0
	}
	return int(t.start) + max(m[2], m[4]), int(t.start) + max(m[3], m[5])
}

// quotedAt returns the value that the word i, "value" or "valor", says is quoted next, if its field is personal: The
// value 'MARIA' of element 'ans:nomeBeneficiario' is not valid.
func (r *reader) quotedAt(i int) edit {
	t := &r.tokens[i]
	if t.class != quoting || t.path {
		return edit{}
	}
	start, end := r.quotedBehind(t)
	if end == 0 {
		return edit{}
	}
	k := r.fieldBehind(i+1, end)
	if k == nobodys && r.run(start, isDigit) == end {
		return edit{end: end}
	}
	if !r.suits(start, end, k) {
		if k = r.fieldBefore(i); !r.suits(start, end, k) {
			return edit{}
		}
	}
	return edit{start, end, k}
}

// fieldBehind returns the kind of the element, attribute or type that the rest of the sentence names, from the token i
// and the character end on.
func (r *reader) fieldBehind(i, end int) kind {
	for ; i < len(r.tokens) && int(r.tokens[i].start)-end < maxQuoted; i++ {
		t := &r.tokens[i]
		if int(t.start) < end {
			continue
		}
		isQuoted := t.gap&hard != 0 && bytes.Count(r.Chars[end+1:t.start], []byte("'"))%2 == 1 // a pattern: '[!-~]{20}'
		if t.form == mark || t.gap&line != 0 || t.gap&hard != 0 && !isQuoted {
			break
		}
		if is(t.class, fields|setOf(engineKey)) {
			if from, to := r.quotedBehind(t); to > 0 {
				return r.fieldKind(from, to)
			}
		}
	}
	return none
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
	for i := start; i < end; i++ {
		t := r.lookup(i)
		switch {
		case t.size() == 0 || t.class == article:
		case k == name && is(t.class, keeping|setOf(stop, paper, house)): // nomeProcedimento
			return none
		case k != none && k != id:
			return k
		case t.class == secretive:
			return secret
		case is(t.class, keeping):
			return nobodys
		case is(t.class, setOf(label, named, person)), t.class == qualifier && t.kind == name:
			k = t.kind
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
	case none, nobodys:
		return false
	case secret:
		return !isNothing(r.Chars[start:end])
	case mail, address, user:
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
	c := r.contextOf(i)
	if isLabelled := c.label == address && c.direct; !isLabelled && !(isStreet && t.size() > 2 && r.isNumbered(i)) {
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

// isNumbered reports whether a street's name and a number follow the word i.
func (r *reader) isNumbered(i int) bool {
	for j := i + 1; j < len(r.tokens) && j-i < streetWords/2; j++ {
		t := &r.tokens[j]
		switch {
		case t.gap&^(comma|other) != 0:
			return false
		case t.form == number:
			return j > i+1
		case t.form != word || !is(t.class, nameable) || t.class != article && isSmall(r.Chars[t.start]):
			return false
		}
	}
	return false
}

// streetEnd returns where the address ends that begins with the word i: before what is no part of one.
func (r *reader) streetEnd(i int) int {
	end := r.tokens[i].end
	for words := 1; i+words < len(r.tokens) && words < streetWords; words++ {
		t := &r.tokens[i+words]
		isMessage := t.form == word && !is(t.class, nameable) && isSmall(r.Chars[t.start])
		if t.gap&(line|hard|closer|open|sign|endTag) != 0 || t.form == mark || isMessage || t.class == label {
			break
		}
		end = t.end
	}
	return int(end)
}
