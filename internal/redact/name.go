package redact

import "bytes"

const (
	maxNameWords = 12  // of one name
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
	below    bool // on the line below, indented or all of it
	filled   bool // behind "informado" and the like
}

// expectedAt returns what the words before the token i let expect.
func (r *reader) expectedAt(i int) expectation {
	start := int(r.tokens[i].start)
	e := expectation{given: r.tokens[i].class == given, capital: !isSmall(r.Chars[start])}
	e.titled = e.capital && isSmall(r.char(start+1))
	e.enclosed = isOneOf(r.char(start-1), `"'(`) && r.char(start-2) == ' ' && isAlnum(r.char(start-3))
	for j := i - 1; j >= 0 && i-j <= maxNameWords; j-- {
		g := r.tokens[j+1].gap
		if j == i-1 && g&line != 0 {
			e.below = g&indent != 0 || r.isNameLine(i)
		}
		if !e.crosses(g) || e.meets(r, j, g) {
			break
		}
	}
	return e
}

// crosses takes account of what stands between two tokens, and reports whether a label may stand before it.
func (e *expectation) crosses(g gap) bool {
	e.assigned = e.assigned || g&sign != 0
	e.dashed = (e.dashed || g&dash != 0) && !e.assigned
	return g&(hard|open|endTag|url) == 0 && (g&(comma|closer) == 0 || e.enclosed && e.given) &&
		(g&line == 0 || e.assigned || e.below)
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
	case e.below && (is(t.class, setOf(person, named)) || isKin) && !r.beginsLine(j):
		return true // a line that ends with a label, and is none
	case t.class == person, t.class == named, isKin && (g&sign != 0 || e.below) && !e.filled:
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

// beginsLine reports whether nothing but labels stands on the line before the token j.
func (r *reader) beginsLine(j int) bool {
	for ; j > 0 && r.tokens[j].gap&(line|sign) == 0; j-- {
		if !is(r.tokens[j-1].class, setOf(person, named, qualifier, article)) || r.tokens[j-1].form != word {
			return false
		}
	}
	return true
}

// isNameLine reports whether the words from i on are all of a line, and rather a name's than a message's.
func (r *reader) isNameLine(i int) bool {
	words, isGiven, isMessage := 0, false, false
	for first := i; i < len(r.tokens) && (i == first || r.tokens[i].gap&line == 0); i++ {
		t := &r.tokens[i]
		isSon := t.class == qualifier && t.kind == name && i > first // Ana Reis Filha
		if t.form != word || !is(t.class, nameable) && !isSon || i > first && t.gap&^other != 0 || words > maxNameWords {
			return false
		}
		if t.class != article {
			words++
		}
		isGiven = isGiven || t.class == given
		isMessage = isMessage || t.class != article && r.endsAsMessage(t)
	}
	return isGiven || words > 1 && !isMessage
}

// nameAt returns the name that begins with the word i, if one is expected.
func (r *reader) nameAt(i int) edit {
	t := &r.tokens[i]
	start := int(t.start)
	before := r.char(start - 1)
	if !is(t.class, nameable) && !r.isInitial(i, false) || t.class == article || t.path || isAlnum(before) ||
		isMark(before) || before == '_' {
		return edit{} // nomeArquivo, nome_arquivo
	}
	e := r.expectedAt(i)
	if e.words == 0 {
		return r.surnameFirstAt(i)
	}
	if !e.capital && !e.assigned {
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
	isListed := r.isOpened(int(r.tokens[i].start))
	end, words := 0, 0
	for range maxNameWords {
		last, isParticle := r.partEnd(i, words > 0, e.assigned)
		if last < 0 {
			break
		}
		if !isParticle {
			words++
			end = int(r.tokens[last].end)
		}
		isSurname := e.person && !(e.given && words > 1) && r.isSurname(i, last, e.assigned)
		if i = last + 1; !r.joins(last, isListed || isSurname) {
			break
		}
	}
	if words < e.words {
		return 0
	}
	return end
}

// partEnd returns the last token of the part of a name that the word i begins: Maria, D'Ávila, Costa-Lima, J.; -1 where
// it begins none. later: another part stands before it. small: small letters will do.
func (r *reader) partEnd(i int, later, small bool) (last int, isParticle bool) {
	isCapital := !isSmall(r.Chars[r.tokens[i].start])
	isParticle = true
	for ; ; i++ {
		t := &r.tokens[i]
		if t.form != word || !is(t.class, nameable) && !r.isInitial(i, later) {
			return -1, false
		}
		isParticle = isParticle && t.class == article
		if i+1 == len(r.tokens) || r.tokens[i+1].form != word {
			break
		}
		between := r.Chars[t.end:r.tokens[i+1].start]
		if len(between) > 1 || len(between) == 1 && !isOneOf(between[0], ".-'") {
			break
		}
	}
	next := r.char(int(r.tokens[i].end))
	if !isCapital && !isParticle && !small || isOneOf(next, "_@=") || next == ':' && !isCapital {
		return -1, false
	}
	return i, isParticle
}

// isInitial recognises the "A." of "Maria A. Silva", and behind another part that of "JANE A not found".
func (r *reader) isInitial(i int, later bool) bool {
	t := &r.tokens[i]
	isCapital, next := !isSmall(r.Chars[t.start]), r.char(int(t.end))
	return t.size() == 1 && ((isCapital || t.class == unknown) && next == '.' ||
		later && isCapital && next == ' ' && isSmall(r.char(int(t.end)+1)))
}

// joins reports whether the token behind the last one goes on with its name: behind blanks ('+' in a form), or a comma.
func (r *reader) joins(last int, comma bool) bool {
	if last+1 == len(r.tokens) || r.tokens[last+1].form != word {
		return false
	}
	between := r.Chars[r.tokens[last].end:r.tokens[last+1].start]
	if r.isInitial(last, false) {
		between = bytes.TrimPrefix(between, []byte("."))
	}
	if comma {
		between = bytes.TrimPrefix(between, []byte(","))
	}
	return 0 < len(between) && len(between) <= maxGap && len(bytes.Trim(between, " +")) == 0
}

// isSurname reports whether the part from the token i to last may be a surname before a comma: SMITH, JANE. Without a
// sign that assigns it, a given name follows.
func (r *reader) isSurname(i, last int, assigned bool) bool {
	if last+1 == len(r.tokens) || isSmall(r.Chars[r.tokens[i].start]) {
		return false
	}
	t := &r.tokens[last+1]
	isUnknown := t.class == unknown && assigned && !(isSmall(r.Chars[t.end-1]) && r.endsAsMessage(t))
	return !isSmall(r.Chars[t.start]) && (t.class == given || isUnknown)
}

var surnameFirst = regular(`[A-Z\x{fffd}]{2,}(?: [A-Z\x{fffd}]{2,}){0,3}, ([A-Z\x{fffd}]{2,})(?: [A-Z\x{fffd}]+){0,4}`)

// surnameFirstAt returns the name that the word i begins without a label: ERRO: SOUZA, ANA MARIA | guia 1.
func (r *reader) surnameFirstAt(i int) edit {
	start := int(r.tokens[i].start)
	if r.tokens[i].gap&(sign|line) == 0 {
		return edit{}
	}
	m := surnameFirst.FindSubmatchIndex(r.Chars[start:min(len(r.Chars), start+maxQuoted)])
	if m == nil || r.lookup(start+m[2]).class != given {
		return edit{}
	}
	if end, _, _ := r.wordsEnd(start, start+m[1]); end < start+m[1] {
		return edit{}
	}
	return edit{start, start + m[1], name}
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
		switch {
		case t.form != word || words > 0 && t.gap&other != 0:
			return false
		case t.class == article && words > 0:
			continue
		case words == 0 && t.class == given:
			return true
		case t.class != unknown && t.class != given || t.size() < 3 || r.endsAsMessage(t):
			return false
		}
		if words++; words == 2 {
			return true
		}
	}
	return false
}

func (r *reader) endsAsMessage(t *token) bool {
	const longest = 5 // letters of an ending
	folded := [longest + 1]byte{'-'}
	for n := min(longest, t.size()); n > 1; n-- {
		for i, c := range r.Chars[int(t.end)-n : t.end] {
			folded[1+i] = lower(c)
		}
		if lexicon[string(folded[:1+n])].class == ending {
			return true
		}
	}
	return false
}

// isNumbered reports whether a street's name and a number stand at i.
func (r *reader) isNumbered(i int) bool {
	m := numbered.FindSubmatchIndex(r.Chars[i:min(len(r.Chars), i+maxAddress)])
	if m == nil {
		return false
	}
	end, _, _ := r.wordsEnd(i+m[2], i+m[3])
	return end == i+m[3]
}

// numbered is a street's name and a number.
var numbered = regular(`(?:<L>{3,}|<L>{2}\.)[ +]((?:\d{1,2}[ +])?(?:(?i:d[aeo]s?)[ +])?<N>),?[ +](?:n[o.]{0,2}[ +]?)?\d`)

// addressAt returns the address that the word i begins: all of what is quoted or tagged, or from a street's word on.
func (r *reader) addressAt(i int) edit {
	t := &r.tokens[i]
	start := int(t.start)
	isEnclosed, isStreet := r.isOpened(start), t.class == street && (t.size() > 1 || r.char(int(t.end)) == '.')
	isAssigned := t.gap&sign != 0 && t.size() > 1 && is(t.class, nameable) && !isSmall(r.Chars[start])
	if t.path || !isEnclosed && !isStreet && !isAssigned {
		return edit{}
	}
	if c := r.context.ofNumber(); (c.label != address || !c.direct) && !(isStreet && r.isNumbered(start)) {
		return edit{}
	}
	if !isEnclosed {
		return edit{start, r.streetEnd(i), address}
	}
	closers := map[byte]string{'>': "<]", '[': "<]", '\'': "'", '"': `"`}[r.char(start-1)]
	for end := start; end < start+maxAddress; end++ {
		switch c := r.char(end); {
		case c == 0 || c == '\n' || isMark(c):
			return edit{}
		case isOneOf(c, closers):
			return edit{start, end, address}
		case isOneOf(c, ":@["): // more than an address, or read before
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
		isMessage := t.form == word && !is(t.class, nameable) && isSmall(r.Chars[t.start])
		if t.gap&(line|hard|closer|open|sign|endTag) != 0 || t.form == mark || isMessage || t.class == label {
			break
		}
		end = t.end
	}
	return int(end)
}
