package redact

import (
	"bytes"
	"slices"
	"strings"
)

// Secrets (R32): what stands behind a word for one (senha=…, <senhaPrestador>…, Authorization: Bearer …). What shows by
// itself that it is one (a JSON web token, a private key, a vendor's token) has a notation. Where a mark stands between
// the word and its secret nothing is taken.

const (
	maxToSecret  = 60 // characters between a word and its secret
	shortSecret  = 3  // characters of one that a sign assigns
	likelySecret = 8  // of one that a vague word stands before
	longSecret   = 16
)

var codeName = regular(`(?i:codigo de (?:acesso|seguranca|verificacao)|codigo sms|` +
	`(?:access|verification|security) code)`)

// secretAt returns the secret that the word i says follows.
func (r *reader) secretAt(i int) edit {
	t := &r.tokens[i]
	start, end, c := int(t.start), int(t.end), t.class
	switch {
	case is(c, secrets):
	case c == engineKey && t.size() == len("key") && i > 0 && is(r.tokens[i-1].class, setOf(keyOwner, secretive)) &&
		t.start-r.tokens[i-1].end <= 1: // API key
		c = secretive
	case c == keyOwner || t.kind == record:
		code := codeName.Find(r.Chars[start:min(len(r.Chars), start+maxToSecret)])
		if code == nil {
			return edit{}
		}
		end, c = start+len(code), secretive
	default:
		return edit{}
	}
	if e := r.labelledSecret(start, end, c); e.kind != none || c != secretive {
		return e
	}
	return r.codeBefore(i)
}

// codeBefore returns the code that stands before its name, the word i: 482917 é o seu código de acesso.
func (r *reader) codeBefore(i int) edit {
	isTold, isYours := false, r.tokens[i].class != secretive
	for j := i - 1; j >= max(0, i-near/2) && r.tokens[j+1].gap&(line|hard) == 0; j-- {
		t := &r.tokens[j]
		start, end := int(t.start), int(t.end)
		if !isTold {
			said := string(r.Chars[start:end])
			isTold = t.form == word && slices.Contains(verbs, said)
			isYours = isYours || said == "seu" || said == "sua" || said == "your"
			continue
		}
		for start > 0 && end-start < longSecret && (isAlnum(r.Chars[start-1]) || isOneOf(r.Chars[start-1], "@#$!-") ||
			r.Chars[start-1] == ' ' && looks[r.Chars[start]] == isDigit && looks[r.char(start-2)] == isDigit) {
			start--
		}
		if isYours && looksSecret(r.Chars[start:end], true, false) {
			return edit{start, end, secret}
		}
		break
	}
	return edit{}
}

// way is what stands between a word and its secret.
type way struct {
	class  class
	sign   byte // ':', '=' or '<', which assigns it; 0 for none
	tight  bool // the sign stands right behind the word
	words  int
	told   bool // the last is a verb that says what the secret is
	far    bool // words that do not merely connect are among them
	quote  byte // opens the secret; 0 for none
	quoted bool // the word itself is quoted: a key of JSON
	line   bool // the secret is all of a line
	ends   string
}

// labelledSecret returns the secret that the word from begin to end says follows.
func (r *reader) labelledSecret(begin, end int, c class) edit {
	name, ok := r.nameStart(begin), false
	if end, ok = r.secretNameEnd(begin, end); !ok {
		return edit{}
	}
	if r.char(name-1) == '<' {
		if tag := tagRest.Find(r.Chars[end:]); tag != nil {
			return r.textAt(end + len(tag))
		}
	}
	w := way{class: c, ends: " \"'<>|\n"}
	if r.has(name, "--") && r.char(end) == ' ' {
		return edit{end + 1, r.secretEnd(end+1, &w), secret}
	}
	if r.has(name, "jsessionid") { // in a URL
		w.ends += "?"
	}
	w.quoted = isOneOf(r.char(end), `"'`) && r.char(name-1) == r.char(end)
	start := r.follow(&w, end)
	if start == 0 || w.sign == 0 && c == header {
		return edit{}
	}
	w.quoted = w.quoted || w.quote != 0 && r.char(begin-1) == '_' // keystore_pass: "changeit"
	if v := r.lookup(start); v.class == digest {
		return edit{} // what follows is read as it stands
	} else if v.class == scheme && r.char(int(v.end)) == ' ' {
		start = r.pastBlanks(int(v.end))
	}
	w.line = w.line || w.quote == 0 && w.tight && c == secretive && r.isOwnLine(start)
	end = r.secretEnd(start, &w)
	for all := r.run(start, isDigit) == end; all && isOneOf(r.char(end), " -.") && looks[r.char(end+1)] == isDigit; {
		end = r.run(end+1, isDigit)
	}
	isObject := w.sign == 0 && w.quote != 0 && (r.has(end+1, " not found") || r.has(end+1, " is forbidden")) // Kubernetes'
	if end <= start || isObject || !r.isSecret(start, end, &w) {
		return edit{}
	}
	return edit{start, end, secret}
}

// secretNameEnd returns where the identifier ends that the word from start to end is a part of: senhaPrestador,
// client_secret_key. It is no secret's name where it tells what is wrong with one: SenhaInvalida, PASSWORD_EXPIRED.
func (r *reader) secretNameEnd(start, end int) (int, bool) {
	rest := nameRest.Find(r.Chars[end:min(len(r.Chars), end+maxToSecret)])
	for t := range r.words(end, end+len(rest)) {
		if is(t.class, connecting|setOf(element)) || webToken.Match(r.Chars[t.start:]) {
			return 0, false
		}
	}
	end += len(rest)
	if len(rest) == maxToSecret || isAlnum(r.char(end)) || isMark(r.char(end)) || slices.ContainsFunc(rest, isMark) {
		return 0, false
	}
	written := r.Chars[start:end]
	joined := r.char(start-1) == '_' || bytes.IndexByte(written, '_') >= 0
	return end, r.char(end) == '=' || !joined || bytes.ContainsFunc(written, isSmallRune) || r.isNameOf(start, end)
}

var nameRest = regular(`<L>*(?:[_-]<L>+)*(?:[_-]?\d{1,3})?`)

// isNameOf reports whether the identifier in capitals that the word from start to end is the last of is a secret's, and
// no error's: DB_PASSWORD: 'a', not WRONG_PASSWORD: x. What it assigns is quoted, or no word.
func (r *reader) isNameOf(start, end int) bool {
	if first := r.lookup(r.nameStart(start)); is(first.class, messages) || bytes.IndexByte(r.Chars[start:end], '_') >= 0 {
		return false
	}
	if isOneOf(r.char(end), `"'`) {
		end++
	}
	end = r.pastBlanks(end)
	value := r.pastBlanks(end + 1)
	return isOneOf(r.char(end), ":=") && (isOneOf(r.char(value), `"'`) || r.isMixed(value))
}

// nameStart returns where the identifier begins that the word at start is a part of.
func (r *reader) nameStart(start int) int {
	i := start
	for start-i < maxToSecret && i > 0 && (looks[r.Chars[i-1]] == isLetter || isOneOf(r.Chars[i-1], ":_-")) {
		i--
	}
	return i
}

var tagRest = regular(`(?:[^<>/]|/[^<>]){0,300}>(?:\s*<!\[CDATA\[)?\s*`)

// textAt returns the secret that is all the text of an element at i.
func (r *reader) textAt(i int) edit {
	over := "<"
	if r.has(i-len("[CDATA["), "[CDATA[") {
		over = "]]>"
	}
	v, _, _ := bytes.Cut(r.Chars[i:], []byte(over))
	if v = bytes.TrimSpace(v); isNothing(v) {
		return edit{}
	}
	return edit{i, i + len(v), secret}
}

var (
	assigns = regular(`["'] *\n *\n[ \n]*|["']?\]? *([:=]|;s:\d+:|\.{4,}|</(?:td|th|dt|label)>\s*<(?:td|dd|span)\b[^<>]{0,30}>)` +
		`[=>]*(?:</(?:b|strong|span|label)>)? *(?:\s*string\(\d+\) )?(\n *)?\[?(["'])?`)
	leadsOn = regular(`["']?(?: +(["'])|(?: *,)? *\(? *["']?[A-Za-z0-9\x{fffd}])`)
)

// assigned returns where what a sign at i assigns begins; 0 where there is no sign, -1 where another key follows it.
func (r *reader) assigned(w *way, i int) int {
	if isAlnum(r.char(r.pastBlanks(i))) {
		return 0
	}
	rest := r.Chars[i:min(len(r.Chars), i+maxToSecret)]
	m := assigns.FindSubmatchIndex(rest)
	switch {
	case m == nil:
		return 0
	case m[2] < 0: // a form's part
		w.sign, w.line = ':', w.quoted && w.words == 0
		if !w.line {
			return -1
		}
		return i + m[1]
	}
	w.sign, w.tight = rest[m[2]], w.words == 0
	if i += m[1]; m[6] >= 0 {
		w.quote = rest[m[6]]
	} else if m[4] >= 0 && r.isKeyAt(i) {
		return -1
	} else if m[4] >= 0 { // it has to look like one
		w.words++
	}
	return i
}

// verbs say that the secret comes: "a senha é …".
var verbs = strings.Fields("e is foi era was ser alterada trocada resetada definida redefinida mudada atualizada " +
	"changed reset como as")

// follow goes from the name that ends at i, over words of messages, to where its secret would begin; 0 where it cannot
// be.
func (r *reader) follow(w *way, i int) int {
	for {
		if start := r.assigned(w, i); start != 0 {
			return max(start, 0)
		}
		rest := r.Chars[i:min(len(r.Chars), i+maxToSecret)]
		m := leadsOn.FindSubmatchIndex(rest)
		if m == nil {
			return 0
		}
		if m[2] >= 0 {
			w.quote = rest[m[2]]
			return i + m[1]
		}
		start := i + m[1] - 1
		v := r.lookup(start)
		if w.words > 0 && v.class == unknown && isOneOf(r.char(int(v.end)), ":=") && r.char(int(v.end)+1) != '/' {
			v.class = stop // password for user admin: …
		}
		if !is(v.class, messages) || w.words == near || r.isMixed(start) {
			if w.far || !isOneOf(r.char(start-1), " (") {
				return 0
			}
			return start
		}
		if v.class != quoting {
			w.words++
			said := string(r.Chars[v.start:v.end])
			w.told = slices.Contains(verbs, said) || w.told && (said == "para" || said == "to")
			w.far = (w.far || !is(v.class, connecting)) && !w.told
		}
		i = int(v.end)
	}
}

// past returns where the letters, digits and signs at i end.
func (r *reader) past(i int, signs string) int {
	for isAlnum(r.char(i)) || isOneOf(r.char(i), signs) {
		i++
	}
	return i
}

func (r *reader) keyEnd(i int) int { return r.past(i, "_-.") }

// isKeyAt reports whether a key and the sign that assigns its value stand at i.
func (r *reader) isKeyAt(i int) bool { return isOneOf(r.char(r.keyEnd(i)), `=:"'`) }

// isMixed reports whether a digit is in the token at i, so that it is no word.
func (r *reader) isMixed(i int) bool {
	return bytes.ContainsAny(r.Chars[i:r.past(i, "-_.=~+/")], "0123456789")
}

// secretEnd returns the end of the secret that begins at i: its quotation mark or line, else a blank or what nothing
// but another key follows.
func (r *reader) secretEnd(i int, w *way) int {
	ends, others := w.ends, ",;&)]}"
	if w.line {
		ends, others = "\n", ""
	} else if w.quote != 0 {
		end := i + bytes.IndexAny(r.Chars[i:], string(w.quote)+"\n")
		if end >= i && r.Chars[end] == w.quote {
			return end
		}
		ends, others = " \n", "" // it was cut off, perhaps
	}
	end := i
	for end < len(r.Chars) && !isOneOf(r.Chars[end], ends) &&
		(!isOneOf(r.Chars[end], others) || r.goesOnSecretly(end+1)) {
		end++
	}
	return i + len(bytes.TrimRight(r.Chars[i:end], " "))
}

// isOwnLine reports whether nothing but a key and its sign stands before i on a line that is not the first: a part of
// a settings file, whose values need no quotation marks.
func (r *reader) isOwnLine(i int) bool {
	line := bytes.LastIndexByte(r.Chars[max(0, i-maxToSecret):i], '\n')
	if line < 0 {
		return false
	}
	key := bytes.Trim(r.Chars[max(0, i-maxToSecret)+line+1:i], " -:=")
	return !bytes.ContainsAny(key, " \n\"'(){}[]<>,;&|@/")
}

// goesOnSecretly reports whether a secret goes on at i, behind a sign that may end it: neither nothing follows nor
// another key.
func (r *reader) goesOnSecretly(i int) bool {
	return (isAlnum(r.char(i)) || isOneOf(r.char(i), "!@#$%*")) && !r.isKeyAt(i) && r.keyEnd(i) < len(r.Chars) &&
		!titledKey.Match(r.Chars[i:min(len(r.Chars), i+maxToSecret)])
}

// titledKey is another key of a connection string: Connect Timeout=15.
var titledKey = regular(`[A-Z][a-z]+(?: [A-Z][a-z]*){1,3} ?=`)

// isSecret reports whether the characters from start to end are a secret and no word of a message.
func (r *reader) isSecret(start, end int, w *way) bool {
	v := r.Chars[start:end]
	if isNothing(v) {
		return false
	}
	first := r.lookup(start)
	known := !is(first.class, nameable|setOf(team)) && (int(first.end) == end || isOneOf(r.Chars[first.end], " .!?"))
	switch {
	case w.sign == 0 && w.quote == 0:
		return looksSecret(v, (w.words == 0 || w.told) && w.class == secretive, w.class == opaque)
	case known && (w.sign == 0 || w.quote == 0 && (w.sign != '=' || !w.tight) || bytes.IndexByte(v, ' ') >= 0):
		return false
	case w.words > 0:
		return looksSecret(v, w.class == secretive && !w.far, false)
	case w.class == opaque && !w.quoted && (w.sign != '=' || !w.tight):
		return bytes.ContainsFunc(v, isAnyLetter) && (len(v) >= likelySecret && mixes(v) || len(v) >= 2*longSecret)
	}
	return len(v) >= shortSecret
}

func isAnyLetter(c rune) bool { return c >= 0x80 || looks[c] == isLetter }

var nothing = regular(`(?i:null|nil|none|undefined|empty|true|false|n/a|yes|sim)?[^A-Za-z0-9\x{fffd}]*$`)

// isNothing reports whether v stands for no value, or hides one already.
func isNothing(v []byte) bool { return nothing.Match(v) || slices.ContainsFunc(v, isMark) }

// looksSecret reports whether a token that no sign assigns is a secret by its looks: letters, and digits or signs that
// are in no word. Right behind its name digits alone will do; behind a vague name it is a long one.
func looksSecret(v []byte, direct, vague bool) bool {
	v = bytes.TrimRight(v, ".:!?")
	letters, digits := bytes.ContainsFunc(v, isAnyLetter), bytes.ContainsAny(v, "0123456789")
	switch {
	case bytes.Contains(v, []byte("://")) || bytes.IndexByte(v, '=') >= 0:
		return false
	case vague:
		return len(v) >= longSecret && letters && digits
	case len(v) < 4:
		return false
	case direct && !letters:
		return digits && len(bytes.Trim(v, "0123456789 -.")) == 0
	}
	small := bytes.ContainsFunc(v, isSmallRune)
	return letters && (digits && (small || direct && !bytes.ContainsAny(v, "-_")) || bytes.ContainsAny(v, "!@#$%*^+"))
}

// mixes reports whether v has what words have not: a digit, or a capital behind a small letter, or padding.
func mixes(v []byte) bool {
	for i, c := range v {
		if looks[c] == isDigit || i > 0 && isSmall(v[i-1]) && looks[c] == isLetter && !isSmall(c) {
			return true
		}
	}
	return bytes.HasSuffix(v, []byte("=="))
}

// pastBlanks returns where what is behind the blanks at i begins.
func (r *reader) pastBlanks(i int) int {
	for r.char(i) == ' ' {
		i++
	}
	return i
}
