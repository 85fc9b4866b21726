package redact

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// notation is a way to write data that begins with a word: a line of notations.txt, which explains its parts.
type notation struct {
	before string              // the signs that may stand right before the word; empty for any
	looks  func(v []byte) bool // reports whether the first group looks as it has to; may be nil
	form   *regexp.Regexp
	begins *set // the characters that a match may begin with
}

// notations holds the notations by the class of the word that begins them.
var notations = func() (all [256][]notation) {
	for part := range lines("notations.txt", 4) {
		form := regular(part[3])
		n := notation{strings.Trim(part[1], "."), checks[part[2]], form, beginsOf(form)}
		for _, c := range []byte(part[0]) {
			all[c] = append(all[c], n)
		}
	}
	return all
}()

// beginsOf returns the characters that a match of form may begin with, so that form is tried on few words.
func beginsOf(form *regexp.Regexp) *set {
	parsed, _ := syntax.Parse(form.String(), syntax.Perl) // it was compiled
	program, _ := syntax.Compile(parsed.Simplify())
	var begins set
	open := []uint32{uint32(program.Start)}
	for n := 0; n < len(open) && n < len(program.Inst); n++ {
		switch i := &program.Inst[open[n]]; i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			open = append(open, i.Out, i.Arg)
		case syntax.InstCapture, syntax.InstEmptyWidth, syntax.InstNop:
			open = append(open, i.Out)
		default:
			for c := range begins {
				begins[c] = begins[c] || i.Op == syntax.InstMatch || c >= utf8.RuneSelf || i.MatchRune(rune(c))
			}
		}
	}
	return &begins
}

// checks are the conditions that notations.txt names.
var checks = map[string]func(v []byte) bool{
	"mixes":      mixed.Match,
	"looksMixed": func(v []byte) bool { return looksSecret(v, false, false) },
	"looksTold":  func(v []byte) bool { return looksSecret(v, true, false) },
	// small letters and digits, which no error's code mixes
	"isOpaque": func(v []byte) bool {
		return bytes.ContainsAny(v, "0123456789") && bytes.ContainsFunc(v, isSmallRune)
	},
	// a password behind the letter of its option: -pSecret
	"isGlued":   func(v []byte) bool { return looksSecret(v, false, false) || 'A' <= v[0] && v[0] <= 'Z' },
	"isGiven":   func(v []byte) bool { isGiven, _ := namesIn(v); return isGiven },
	"isPersons": func(v []byte) bool { isGiven, isLikely := namesIn(v); return isGiven || isLikely },
	"isRandom":  isRandom,
	// the placeholder of a person's number, of one or a telephone's
	"isPersonal": func(v []byte) bool { return isMark(v[0]) && kind(v[0]&0xf) <= card },
	"isNumber":   func(v []byte) bool { return isMark(v[0]) && kind(v[0]&0xf) <= phone },
}

// namesIn reports whether a given name is among the words that the signs of logins and file names join in v, and
// whether v looks like a person's user name rather than a host's, file's or program's.
func namesIn(v []byte) (isGiven, isLikely bool) {
	v = bytes.ToLower(v[bytes.LastIndexByte(v, '\\')+1:])
	isLikely = len(v) > maxShort
	for word := range bytes.FieldsFuncSeq(v, func(c rune) bool { return is(byte(c), "^._- ") }) {
		c := lexicon[string(word)].class
		if c != 0 && !isName[c] || bytes.HasPrefix(word, []byte("svc")) || bytes.HasSuffix(word, []byte("web")) {
			return false, false
		}
		isGiven = isGiven || c == given
		isLikely = isLikely && (c != 0 || len(word) > maxShort && !endsAsMessage(word))
	}
	return isGiven, isLikely || bytes.IndexByte(v, '.') > 0
}

// isRandom reports whether digits, small letters and capitals alternate in v more than in a word, version or date.
func isRandom(v []byte) bool { return len(alike.FindAll(v, 6)) == 6 }

var alike = regexp.MustCompile(`[a-z][^A-Z0-9]*|[A-Z][^a-z0-9]*|[0-9][^A-Za-z]*`)

// isWebToken reports whether a JSON web token or a cloud's key begins at i.
func (r *reader) isWebToken(i int) bool {
	return is(r.Chars[i], "eA") && is(r.char(i+1), "yIKS") && is(r.char(i+2), "JzI") && r.keyEnd(i)-i > longSecret
}

const (
	noted      = "4yBbMlWqszmvJVErPF0SDOwoNK7LT1It" // classes that begin a notation whatever stands around it
	brief      = "SDOwoNK7LT1Im"                    // those of them whose notation is short
	privateKey = "BEGIN "
	// Characters of a notation that are read, though a secret may go on. maxUnknown is for brief and unknown words.
	maxNoted, maxUnknown = 640, 96
)

// notedAt takes the data of a notation that begins with the token i, and returns where they end; 0 for none.
func (r *reader) notedAt(i int) int {
	start, class := r.start(i), r.classes[i]
	switch {
	case is(class, leading):
		class |= 0x20
	case class == keyed:
		class = unknown
	}
	before := r.char(start - 1)
	isOption := before == '-' && is(r.char(start-2), " -\n\x00")
	next := r.char(r.end(i) + 1)
	begins := start == 0 || is(before, "\n[")
	within := maxUnknown
	switch {
	case class == number && !is(next, "ei'=N$>") && !isAlnum(next), // 482917 é sua senha, :1='Ana Souza'
		class == staff && r.class(i-2) == house: // Maternidade Dona Francisca
		return 0
	case isNoted[class]:
		if !is(class, brief) {
			within = maxNoted
		}
	case class == given:
	case !isOption && !is(before, `?&|\/@`) && !r.isWebToken(start) && !is(r.char(r.end(i)), ":-=\"'^_\\"):
		return 0
	}
	rest := r.ahead(start, within)
	for k := range notations[class] {
		n := &notations[class][k]
		if !n.begins[rest[0]] || n.before == "^" && !begins ||
			n.before != "" && n.before != "^" && !(is(before, n.before) && (isOption || before != '-' || len(n.before) > 1)) {
			continue
		}
		if m := n.form.FindSubmatchIndex(rest); m != nil && (n.looks == nil || n.looks(rest[m[2]:m[3]])) {
			if end := r.takeGroups(n.form, i, len(rest), m); end > 0 {
				return end
			}
		}
	}
	return 0
}

// takeGroups takes the data in the groups m of a match of form at the token i, which saw within characters. It returns
// where the last of them ends, or a value that stays; 0 for none.
func (r *reader) takeGroups(form *regexp.Regexp, i, within int, m []int) (read int) {
	start, field := r.start(i), none
	if f := form.SubexpIndex("field"); f > 0 && m[2*f] >= 0 {
		from, end := start+m[2*f], start+m[2*f+1]
		if field = r.fieldKind(from, end); field == none {
			for w := range r.words(from, end) {
				field = max(field, map[class]kind{login: user, vague: name, opaque: secret}[w.class])
			}
		}
	}
	for g, group := range form.SubexpNames() {
		if m[2*g] < 0 {
			continue
		}
		from, end, k := start+m[2*g], start+m[2*g+1], kindNamed(group)
		group = strings.TrimRight(group, "23")
		if end == start+within { // the match may go on
			over := bytes.IndexAny(r.Chars[end:], " \n\"'")
			if r.has(start, privateKey) {
				end, over = from, bytes.Index(r.Chars[from:], []byte("-----END"))
			}
			if end += over; over < 0 {
				end = len(r.Chars)
			}
		}
		switch group {
		case "quoted", "value":
			if group == "quoted" {
				end = from + len(bytes.TrimRight(r.Chars[from:end], "%"))
				if field != nobodys && r.suited(from, end, field) == none {
					field = r.fieldBefore(i)
				}
			}
			switch k = r.suited(from, end, field); field {
			case none:
				if n := r.nameWords(from, end); n.count > 1 || n.isGiven {
					end = n.end
				}
				k = r.guessed(from, end)
			case nobodys:
				read = end
			}
		case "row":
			read = r.takeList(from, end, r.fieldBefore(i))
		case "items":
			read = r.takeList(from, end, none)
		case "login":
			if isGiven, isLikely := namesIn(r.Chars[from:end]); isGiven || isLikely {
				k = user
			}
		case "person", "people", "given", "owner":
			n := r.nameWords(from, end)
			if end = n.end; r.isNamed(group, from, n) {
				k = name
			}
		}
		if k != none && r.redact(edit{from, end, k}) {
			read = end
		}
	}
	return read
}

// isNamed reports whether the words n, which begin at start, are a name as the group of a notation has to hold one.
func (r *reader) isNamed(group string, start int, n nameWords) bool {
	first, end := r.lookup(start)
	isLikely := n.count > 0 && end-start > maxShort && !endsAsMessage(r.Chars[start:end])
	switch group {
	case "given":
		return first.class == given && first.kind == none
	case "owner":
		return isLikely
	}
	return n.isGiven || n.count > 1 && !endsAsMessage(r.Chars[start:n.end]) ||
		group == "person" && isLikely && isSmall(r.Chars[end-1])
}

// takeList takes from a list what suits its label's kind, names, and numbers as long as a CPF; a list without a label
// has to hold a name. It returns where the last datum ends.
func (r *reader) takeList(start, end int, label kind) (read int) {
	items, _ := r.cells(start, ',', r.char(end))
	for i, v := range items {
		if typed := bytes.IndexByte(r.Chars[v.start:v.end], '('); typed > 0 { // Ana(String)
			items[i].end = v.start + typed
		}
	}
	isNamed := func(v edit) bool { return r.cellKind(v) == name }
	for _, v := range items {
		if label == none && !slices.ContainsFunc(items, isNamed) {
			break
		}
		k := r.suited(v.start, v.end, label)
		if guess := r.cellKind(v); k == birth || k == none && guess != birth { // a date without a label may be another's
			k = guess
		}
		if v.kind = k; k != none && r.redact(v) {
			read = v.end
		}
	}
	return read
}

var fullName = pattern("fullName")

// guessed returns name if the characters from start to end are most likely one: a given name is among them, or they are
// several words of which none is short or ends as words of messages do. Otherwise it returns none.
func (r *reader) guessed(start, end int) kind {
	n := r.nameWords(start, end)
	isLikely := n.isGiven || n.count > 1 && n.messages == 0 && n.shortest > maxShort && n.isSpaced
	if n.end == end && isLikely && fullName.Match(r.Chars[start:end]) {
		return name
	}
	return none
}

// nameWords are words that may be a name's.
type nameWords struct {
	end               int
	count, messages   int  // words, articles aside; those of them that end as words of messages do
	shortest          int  // letters of a word
	isGiven, isSpaced bool // a given name is among them, a blank
}

// nameWords returns the words from start on that may be a name's, before the first word of a message.
func (r *reader) nameWords(start, end int) (n nameWords) {
	n.shortest, n.isSpaced = end-start, bytes.IndexByte(r.Chars[start:end], ' ') >= 0
	for w, at := range r.words(start, end) {
		isMessages := endsAsMessage(r.Chars[at.start:at.end])
		isPart := isName[w.class] || at.end-at.start == 1 && r.char(at.end) == '\''     // O'Hara
		if !isPart || isMessages && w.class == unknown && isSmall(r.Chars[at.start]) || // ana voltou
			n.count == 0 && w.class == saint { // Santa Casa
			break
		}
		if w.class == article {
			continue
		}
		if n.end, n.count = at.end, n.count+1; isMessages {
			n.messages++
		}
		n.isGiven = n.isGiven || w.class == given
		if r.char(at.end) != '\'' {
			n.shortest = min(n.shortest, at.end-at.start)
		}
	}
	return n
}
