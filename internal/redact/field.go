package redact

import "bytes"

const leastQuoted = 4 // the fewest digits of a quoted number

// fieldBefore returns the kind of the nearest label some tokens before the token i; none if the label has a value of
// its own.
func (r *reader) fieldBefore(i int) kind {
	first := max(0, i-maxLead)
	label := first + bytes.LastIndexAny(r.classes[first:i], labels+persons+marks+"QAZ")
	if label < first || is(r.classes[label], marks+"QAZ") {
		return none
	}
	from, to := r.start(r.nameStart(label)), r.keyEnd(r.end(label))
	switch k := r.fieldKind(from, to); {
	case r.char(to) == '=' && is(r.char(to+1), `"'`):
		return none
	case k == id && bytes.IndexByte(r.Chars[from:to], '_') >= 0: // nm_paciente
		return name
	default:
		return k
	}
}

// fieldKind returns the kind of the field whose name is from start to end: st_CPF, numeroCarteira. A namespace or path
// before the name does not count, unless the name tells nothing: paciente.numero.
func (r *reader) fieldKind(start, end int) (k kind) {
	start += bytes.LastIndexAny(r.Chars[start:end], ":}/") + 1
	for from := end; k == none && from > start; {
		from = start + max(0, bytes.LastIndexByte(r.Chars[start:from], '.'))
		k = r.wordsKind(from, end)
	}
	return k
}

// wordsKind returns the kind that the words from start to end name.
func (r *reader) wordsKind(start, end int) kind {
	k, before := none, class(unknown)
	for w, at := range r.words(start, end) {
		isOwned := before == keyOwner && w.class == engineKey // API_KEY
		before = w.class
		switch {
		case w.class == article:
		case k == name && is(w.class, keeping+"xpdt"): // nomeProcedimento
			return none
		case k == secret && w.class == stop: // PASSWORD_FILE
			return none
		case k != none && k != id && k != secret:
			return k
		case w.class == secretive || isOwned:
			k = secret
		case k == secret:
		case is(w.class, keeping):
			return nobodys
		case at.end-at.start == len("nm") && r.has(at.start, "nm"): // nm_pessoa
			k = name
		case is(w.class, labels+persons+"VK"):
			if w.class != vague {
				k = w.kind
			}
		}
	}
	return k
}

// suited returns k if the characters from start to end may be a datum of kind k, and name if a person's field holds a
// name for a number; none otherwise.
func (r *reader) suited(start, end int, k kind) kind {
	v := r.Chars[start:end]
	digits, letters := len(r.digitsOf(v)), bytes.ContainsFunc(v, isAnyLetter)
	first, _ := r.lookup(start)
	isNumber := digits >= min(leastQuoted, kinds[k].least) || letters && digits == leastQuoted-1
	isNamed := letters && (isName[first.class] || looks[r.Chars[start]] != isLetter)
	isSuited := false
	switch {
	case isNothing(v), k == none, k == nobodys:
	case k == id && !isNumber && isNamed:
		return name
	case k == secret:
		isSuited = len(v) >= shortSecret && !bytes.Contains(v, []byte("://"))
	case k == mail, k == user, k == address:
		isSuited = letters || k == address && digits == kinds[k].least // a CEP
	case k == name:
		isSuited = isNamed
	default:
		isSuited = isNumber
	}
	if !isSuited {
		return none
	}
	return k
}
