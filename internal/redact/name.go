package redact

import (
	"bytes"
	"regexp"
	"slices"
)

const maxLead = 40 // tokens between a label and its name, and of a name

var (
	capitalName, anyName = pattern("capitalName"), pattern("anyName")
	folded, lowerName    = pattern("folded"), pattern("lowerName")
	surnameFirst, street = pattern("surnameFirst"), pattern("street")
	numbered, enclosed   = pattern("numbered"), pattern("enclosed")
	leaders, ending      = pattern("leaders"), pattern("ending")
)

const (
	// What ends the search for the name behind a label, and what lets only a quoted given name count there.
	beyond = hard + "<{\x01\x02FEvPN56" + numberish
	alien  = ")]}|ughrSDObBMlwyLQAJZC9ecjpsYzmdtxki"

	labelling = "aqKTXVW784" // words of a label
)

// nameAt returns the name that begins with the word i, or the one that i labels.
func (r *reader) nameAt(i int) edit {
	label := r.classes[i]
	switch {
	case is(label, capitals):
		return r.surnameFirstAt(i)
	case !isTrigger[label], r.has(r.end(i), "()"), r.context.label == address && r.context.direct, // endereço do paciente
		is(label, persons) && r.size(i) <= maxShort && r.class(r.before(i)) == house:
		return edit{}
	case label == vague && r.class(r.before(i)) == 'q': // first_name
		label = named
	}
	for j := i + 1; j < i+maxLead && !is(r.class(j), beyond); j++ {
		if c := r.class(j); isName[c] && c != article {
			if e := r.nameFrom(j, i, label); e.kind != none || is(c, capitals) {
				return e
			}
		}
	}
	return edit{}
}

// nameFrom returns the name that begins with the word i, behind the label at `at`; a zero edit where none can.
func (r *reader) nameFrom(i, at int, label class) edit {
	start, c := r.start(i), r.classes[i]
	before := r.char(start - 1)
	isCapital, isGiven, isTitled := is(c, capitals), is(c, givens), isSmall(r.char(start+1))
	isEnclosed := is(before, `"'(`) && r.char(start-2) == ' ' && isAlnum(r.char(start-3))

	lead := bytes.TrimPrefix(r.classes[at+1:i], []byte("|")) // Paciente|Ana Reis
	sign, line := bytes.IndexAny(lead, assigning), bytes.LastIndexByte(lead, '\n')
	filler := bytes.LastIndexAny(lead, filling)
	isSigned, isBelow := sign >= 0, line >= 0 && sign < 0
	isTight := isSigned && !bytes.ContainsAny(lead[:sign], labelling) // no word stands before the sign
	isDashed := !isSigned && bytes.IndexByte(lead, '-') >= 0
	isFilled := filler >= 0 && !leaders.Match(lead[filler:]) // Nome informado.: Ana
	isForeign := bytes.ContainsAny(lead, alien) || label != nameMark && bytes.IndexByte(lead, ',') >= 0
	if isBelow { // the line below has to be indented or hold nothing else
		isIndented := line == len(lead)-2 && is(lead[line+1], " \x03")
		if !isIndented && !(line == len(lead)-1 && r.isNameLine(i)) || !r.beginsLine(at) {
			return edit{}
		}
	}
	if isAlnum(before) || isMark(before) || before == '_' || // nomeArquivo, nome_arquivo
		isForeign && !(isEnclosed && isGiven) || isFilled && !isEnclosed && !(isSigned && isCapital) {
		return edit{}
	}
	least, isAny, t := 2, isSigned || label == nameMark, label
	isPerson := is(t, persons) || is(t, workers) && isBelow || t == kin && (isTight || isBelow) && !isFilled
	switch {
	case isPerson && !isDashed, is(t, workers) && isGiven && isSigned,
		t == nameMark && isEnclosed: // informado [NAME], cadastrado 'Maria'
		least = 1
	case isPerson, is(t, "VW8"), t == kin && (isGiven || isTitled), t == staff && (isCapital || isGiven),
		t == worker && (isGiven || isSigned && isCapital):
	default:
		return edit{}
	}
	if !isCapital && !isAny {
		if !isPerson || !r.isLowerName(i) {
			return edit{}
		}
		isAny, least = true, 1
	}
	end := r.nameEnd(i, isAny, isPerson)
	parts := r.countParts(i, end)
	isMessages := !isGiven && endsAsMessage(r.Chars[start:r.start(end)])
	if parts < least || !isSigned && !isTitled && isMessages && r.class(end) != ' ' && parts == 1 || // NOME ILEGÍVEL
		isFilled && !isEnclosed && r.guessed(start, r.start(end)) != name { // nome informado: Ana Reis
		return edit{}
	}
	end += bytes.LastIndexAny(folded.Find(r.tokensAt(end)), nameable) + 1
	return edit{start, r.start(end), name}
}

// nameEnd returns the token behind the name that begins with the word i. With isAny the name may be in small letters,
// with isSurname it may begin with a surname and a comma.
func (r *reader) nameEnd(i int, isAny, isSurname bool) int {
	form := capitalName
	if isAny {
		form = anyName
	}
	end := i + r.nameLength(form, i)
	isListed := r.isOpened(r.start(i))
	for next := end + 1; end > i && r.class(end) == ','; next = end + 1 { // SMITH, JANE
		if is(r.class(next), " +") {
			next++
		}
		isGiven := r.class(next) == 'G' || isAny && r.class(next) == 'U' &&
			!(isSmall(r.Chars[r.end(next)-1]) && endsAsMessage(r.Chars[r.start(next):r.end(next)]))
		isBefore := isSurname && isGiven && !(r.classes[i] == 'G' && r.countParts(i, end) > 1)
		more := r.nameLength(form, next)
		if !isListed && !isBefore || more == 0 {
			break
		}
		end = next + more
	}
	return end
}

// nameLength returns how many tokens from i on the name of that form has.
func (r *reader) nameLength(form *regexp.Regexp, i int) int {
	return bytes.LastIndexAny(form.Find(r.tokensAt(i)), nameable+"i") + 1
}

// countParts returns how many words, articles aside, the name from i to end has.
func (r *reader) countParts(i, end int) (n int) {
	for first := i; i < end; i++ {
		if r.classes[i] != article && r.isWord(i) && (i == first || is(r.classes[i-1], " +,")) {
			n++
		}
	}
	return n
}

// beginsLine reports whether only labels stand before the token i on its line.
func (r *reader) beginsLine(i int) bool {
	before := r.classes[max(0, i-maxLead):i]
	before = before[bytes.LastIndexAny(before, "\n"+assigning)+1:]
	isOther := func(c rune) bool { return isAlnum(byte(c)) && !is(byte(c), "PNqKTXa0") } // 10 - Nome
	return !bytes.ContainsFunc(before, isOther)
}

// isNameLine reports whether the words from i on fill their line, and look like a name rather than a message.
func (r *reader) isNameLine(i int) bool {
	line, _, _ := bytes.Cut(r.Chars[r.start(i):], []byte("\n"))
	start, end := r.start(i), r.start(i)+len(bytes.TrimRight(line, " "))
	n := r.nameWords(start, end)
	return n.end == end && (n.isGiven || n.count > 1 && (isSmall(r.char(start+1)) || n.messages == 0))
}

// isLowerName reports whether the words from i on, in small letters, look like a name rather than a message: a given
// name, or two unknown words that are not short and do not end as a message's.
func (r *reader) isLowerName(i int) bool {
	end := r.start(i + r.match(lowerName, i))
	n := r.nameWords(r.start(i), end)
	return n.end == end && (n.isGiven || n.count > 1 && n.shortest >= maxShort)
}

// endsAsMessage reports whether word ends as words of messages do.
func endsAsMessage(word []byte) bool { return ending.Match(word[max(0, len(word)-len("mente")):]) }

// surnameFirstAt returns the name in capitals, the surname first, that begins with the word i and has no label: ERRO:
// SOUZA, ANA MARIA | guia 1.
func (r *reader) surnameFirstAt(i int) edit {
	if !r.isBehind(i, "\n"+assigning) {
		return edit{}
	}
	start, end := r.start(i), i+r.match(surnameFirst, i)
	if bytes.ContainsFunc(r.Chars[start:r.start(end)], func(c rune) bool { return isSmall(byte(c)) }) {
		return edit{}
	}
	return edit{start, r.start(end), name}
}

// nameBefore returns the name that stands right before the token i.
func (r *reader) nameBefore(i int) edit {
	first := max(0, i-maxLead/2)
	first += bytes.LastIndexFunc(r.classes[first:i], func(c rune) bool { return c != ' ' && !isName[c] }) + 1
	first += max(0, bytes.IndexAny(r.classes[first:i], capitals))
	start := r.start(first)
	end := start + len(bytes.TrimRight(r.Chars[start:r.start(i)], " "))
	return edit{start, end, r.guessed(start, end)}
}

// isOpened reports whether a quotation mark or a tag stands right before i.
func (r *reader) isOpened(i int) bool {
	return is(r.char(i-1), `"'>`) || r.has(i-len("[CDATA["), "[CDATA[")
}

// addressAt returns the address that begins with the word i: all that is quoted or tagged, or what a street's word
// begins.
func (r *reader) addressAt(i int) edit {
	class, start := r.classes[i], r.start(i)
	isMeant, isOpened := r.context.label == address && r.context.direct, r.isOpened(start)
	isNumbered := is(class, streets) && r.size(i) > 1 && r.match(numbered, i) > 0
	isStreet := is(class, streets) || class == initial && r.has(start, "r.")
	isAssigned := r.isBehind(i, assigning) && r.size(i) > 1 && is(class, capitals)
	if r.tokens[i].path || !isNumbered && !(isMeant && (isOpened || isStreet || isAssigned)) {
		return edit{}
	}
	if isOpened {
		if v := enclosed.Find(r.ahead(start-1, maxNoted)); v != nil && !slices.ContainsFunc(v, isMark) {
			return edit{start, start + len(v) - len("<>"), address}
		} else if !isNumbered {
			return edit{}
		}
	}
	return edit{start, r.start(i + r.match(street, i)), address}
}
