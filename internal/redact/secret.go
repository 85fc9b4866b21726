package redact

import (
	"bytes"
	"strings"
)

// Secrets (R32): what stands behind a word for one (senha=…, <senhaPrestador>…, Authorization: Bearer …), and what
// shows by itself that it is one (a JSON web token, a private key, a vendor's token). Where a mark stands between the
// word and its secret nothing is taken.

const (
	maxToSecret  = 60 // characters between a word and its secret
	maxTag       = 300
	maxDigest    = 600
	shortSecret  = 3 // characters of one that a sign assigns
	likelySecret = 8 // of one that a vague word stands before
	longSecret   = 16
	longToken    = 20 // characters that a web token has at least
)

// secretAt returns the secret that the word i begins or says that it follows.
func (r *reader) secretAt(i int) edit {
	t := &r.tokens[i]
	start := int(t.start)
	if !t.inner {
		if e := r.openSecret(start); e.kind != none {
			return e
		}
	}
	if e := r.optionAt(t); e.kind != none {
		return e
	}
	class := t.class
	switch {
	case class == vendor:
		end := r.tokenEnd(start)
		if isOneOf(r.char(int(t.end)), "-_.") && end-start >= longToken {
			return edit{start, end, secret}
		}
		return edit{}
	case class == scheme || class == digest:
		return r.credentials(int(t.end), class)
	case r.isAccessCode(i), class == engineKey && r.isKey(i):
		class = secretive
	case r.isQueryCode(t):
		class = token_
	}
	if !is(class, secrets) {
		return edit{}
	}
	return r.labelledSecret(t, class)
}

// openSecret returns the secret at i that needs no word before it.
func (r *reader) openSecret(i int) edit {
	if c := r.Chars[i]; c != 'e' && c != 'A' && c != 'B' {
		return edit{}
	}
	if r.opensSecret(i) {
		if end := r.tokenEnd(i); end-i >= longToken {
			return edit{i, end, secret}
		}
	}
	const begin, key, over = "-----BEGIN ", "PRIVATE KEY-----", "-----END"
	rest := r.Chars[i:]
	if !r.has(i-5, begin) {
		return edit{}
	}
	from := bytes.Index(rest[:min(len(rest), maxToSecret)], []byte(key))
	if from < 0 {
		return edit{}
	}
	end := len(rest)
	if from += len(key); bytes.Contains(rest[from:], []byte(over)) {
		end = bytes.Index(rest, []byte(over))
	}
	if end-from < longToken {
		return edit{}
	}
	return edit{i + from, i + end, secret}
}

// opensSecret reports whether what is at i begins as web tokens and some vendors' keys do.
func (r *reader) opensSecret(i int) bool {
	for _, prefix := range [...]string{"eyJ", "AIza", "AKIA", "ASIA"} {
		if bytes.HasPrefix(r.Chars[i:], []byte(prefix)) {
			return true
		}
	}
	return false
}

// tokenEnd returns the end of the letters, digits and signs at i that tokens for the web are made of.
func (r *reader) tokenEnd(i int) int {
	for i < len(r.Chars) && (isAlnum(r.Chars[i]) || isOneOf(r.Chars[i], "-_.=~+/")) {
		i++
	}
	return i
}

// optionAt returns user and password where t is an option or a word that they stand behind: curl -u ana:abc,
// jdbc:oracle:thin:ana/abc@host; or the password alone: mysql -pabc1.
func (r *reader) optionAt(t *token) edit {
	start, end := int(t.start), int(t.end)
	isOption := r.char(start-1) == '-'
	if !isOption && t.class != logon {
		return edit{}
	}
	from := r.pastBlanks(end)
	switch opened := r.char(start-2) == ' '; {
	case t.class == logon:
		if r.char(end) == ':' {
			from = end + 1
		}
		return r.logonAt(from, '/')
	case isOption && from > end && (r.has(start, "u ") || r.has(start, "user ")):
		return r.logonAt(from, ':')
	case opened && from > end && t.size() == 1 && isOneOf(r.Chars[start], "pw"):
		if isOneOf(r.char(from), `"'`) {
			from++
		}
		end = from
		for end < len(r.Chars) && !isOneOf(r.Chars[end], " \n\"'") && !isMark(r.Chars[end]) {
			end++
		}
		if v := r.Chars[from:end]; !bytes.ContainsRune(v, '{') && looksSecret(v, false, false) {
			return edit{from, end, secret}
		}
	case opened && r.Chars[start] == 'p':
		end = r.tokenEnd(start)
		if v := r.Chars[start+1 : end]; len(v) > shortSecret && (looksSecret(v, false, false) || !isSmall(v[0]) && isAlnum(v[0]) && looks[v[0]] == isLetter) {
			return edit{start + 1, end, secret}
		}
	}
	return edit{}
}

// logonAt returns the user and password at i, with joint between them.
func (r *reader) logonAt(i int, joint byte) edit {
	quotes, end := 0, i
	for ; end < len(r.Chars) && end-i < maxTag; end++ {
		c := r.Chars[end]
		if c == '\n' || isMark(c) || c == ' ' && quotes%2 == 0 || c == '@' && joint == '/' {
			break
		}
		if c == '"' || c == '\'' {
			quotes++
		}
	}
	v := r.Chars[i:end]
	if j := bytes.IndexByte(v, joint); j < 1 || j == len(v)-1 || quotes%2 != 0 || joint == '/' && r.char(end) != '@' {
		return edit{}
	}
	return edit{i, end, user}
}

// credentials returns what stands right behind the name of a scheme that ends at i: Bearer eyJ…, Basic dXNlcjpzZW5oYQ==.
func (r *reader) credentials(i int, c class) edit {
	start := r.pastBlanks(i)
	if c == digest {
		const response = `response="`
		line, _, _ := bytes.Cut(r.Chars[start:min(len(r.Chars), start+maxDigest)], []byte("\n"))
		j := bytes.Index(line, []byte(response))
		if j < 0 {
			return edit{}
		}
		start += j + len(response)
		end := start
		for end < len(r.Chars) && r.Chars[end] != '"' {
			end++
		}
		return edit{start, end, secret}
	}
	if isOneOf(r.char(start), ":=") {
		start = r.pastBlanks(start + 1)
	}
	end := r.tokenEnd(start)
	if start == i || end-start < likelySecret || !mixes(r.Chars[start:end]) {
		return edit{}
	}
	return edit{start, end, secret}
}

// isKey reports whether the token i is the "key" of an API key, a private key and the like.
func (r *reader) isKey(i int) bool {
	t := &r.tokens[i]
	if i == 0 || t.size() != len("key") {
		return false
	}
	before := &r.tokens[i-1]
	return (before.class == keyOwner || before.kind == none && before.class == secretive) && t.start-before.end <= 1
}

// isAccessCode recognises "código de acesso" and "código de segurança".
func (r *reader) isAccessCode(i int) bool {
	t := &r.tokens[i]
	if t.class == unknown || t.class == article || i < 2 || r.tokens[i-1].class != article {
		return false
	}
	code := &r.tokens[i-2]
	return r.has(int(code.start), "codigo de ") && (r.has(int(t.start), "acesso") || r.has(int(t.start), "seguranca"))
}

// isQueryCode recognises the code and state in a query by which people log in.
func (r *reader) isQueryCode(t *token) bool {
	if !isOneOf(r.char(int(t.start)-1), "?&") || !r.has(int(t.start), "code=") && !r.has(int(t.start), "state=") {
		return false
	}
	v := r.Chars[t.end+1 : r.tokenEnd(int(t.end)+1)]
	return len(v) >= likelySecret && bytes.ContainsAny(v, "0123456789") && bytes.ContainsFunc(v, isSmallRune)
}

func isSmallRune(c rune) bool { return 'a' <= c && c <= 'z' }

// way is what stands between a word and its secret.
type way struct {
	class  class
	sign   byte // ':', '=' or '>', which assigns it; 0 for none
	tight  bool // the sign stands right behind the word
	words  int
	far    bool // words that do not merely connect are among them
	quote  byte // opens the secret; 0 for none
	quoted bool // the word itself is quoted: a key of JSON
	comma  bool // behind the word
	line   bool // the secret is all of a line
}

// labelledSecret returns the secret that t says follows.
func (r *reader) labelledSecret(t *token, c class) edit {
	name, ok := r.nameStart(t), false
	end := int(t.end)
	if end, ok = r.secretNameEnd(t); !ok {
		return edit{}
	}
	if from := r.tagEnd(name, end); from > 0 {
		if r.skip = r.trimmed(from, r.elementEnd(from)); r.skip.kind != none {
			r.redact(r.skip.start, r.skip.end, secret)
		}
		return edit{}
	}
	if r.has(name, "--") && r.char(end) == ' ' {
		return edit{end + 1, r.secretEnd(end+1, &way{class: c}), secret}
	}
	w := way{class: c, quoted: isOneOf(r.char(end), `"'`) && r.char(name-1) == r.char(end)}
	start := r.follow(&w, end)
	if start == 0 || w.sign == 0 && (c == header || c == cookie) {
		return edit{}
	}
	if v := r.lookup(start); v.class == digest {
		return r.credentials(int(v.end), digest)
	} else if v.class == scheme {
		if i := r.pastBlanks(int(v.end)); i > int(v.end) {
			start = i
		}
	}
	w.line = w.line || w.quote == 0 && w.tight && c == secretive && r.isOwnLine(start)
	end = r.secretEnd(start, &w)
	for all := r.run(start, isDigit) == end; all && isOneOf(r.char(end), " -.") && looks[r.char(end+1)] == isDigit; {
		end = r.run(end+1, isDigit)
	}
	if end <= start || !r.isSecret(start, end, &w) {
		return edit{}
	}
	return edit{start, end, secret}
}

// secretNameEnd returns where the identifier ends that t is a part of: senhaPrestador, client_secret_key. It is no
// secret's name where it tells what is wrong with one: SenhaInvalida, PASSWORD_EXPIRED.
func (r *reader) secretNameEnd(t *token) (end int, ok bool) {
	start, i, digits := int(t.start), int(t.end), 0
	for i-int(t.end) <= maxToSecret {
		switch c := r.char(i); {
		case looks[c] == isLetter:
			v := r.lookup(i)
			if is(v.class, connecting) || digits > 0 || r.opensSecret(i) {
				return 0, false
			}
			i = int(v.end)
			continue
		case looks[c] == isDigit:
			if digits++; digits > 3 {
				return 0, false
			}
		case isMark(c):
			return 0, false
		case (c == '_' || c == '-') && isAlnum(r.char(i+1)):
		default:
			written := r.Chars[start:i]
			joined := r.char(start-1) == '_' || bytes.IndexByte(written, '_') >= 0
			return i, c == '=' || !joined || bytes.ContainsFunc(written, isSmallRune)
		}
		i++
	}
	return 0, false
}

// nameStart returns where the identifier begins that t is a part of.
func (r *reader) nameStart(t *token) int {
	i := int(t.start)
	for int(t.start)-i < maxToSecret && i > 0 && (looks[r.Chars[i-1]] == isLetter || isOneOf(r.Chars[i-1], ":_-")) {
		i--
	}
	return i
}

// lookup returns the first word of the letters at i; an empty one where there are none.
func (r *reader) lookup(i int) token {
	t := token{start: int32(i), end: int32(r.run(i, isLetter))}
	if t.entry(r.Chars); t.class == unknown && t.size() > 0 && r.isCamel(i, int(t.end)) {
		t.end = int32(r.humpEnd(i, int(t.end)))
		t.entry(r.Chars)
	}
	return t
}

// tagEnd returns where the text begins of the element whose name is from start to end; 0 where it names none.
func (r *reader) tagEnd(start, end int) int {
	if r.char(start-1) != '<' {
		return 0
	}
	for i := end; i < min(len(r.Chars), end+maxTag); i++ {
		switch c := r.Chars[i]; {
		case c == '<', c == '/' && r.char(i+1) == '>':
			return 0
		case c == '>':
			const cdata = "<![CDATA["
			if i++; r.has(i, cdata) {
				i += len(cdata)
			}
			return i
		}
	}
	return 0
}

// elementEnd returns where the text of an element ends that begins at i.
func (r *reader) elementEnd(i int) int {
	if r.char(i-1) == '[' {
		if end := bytes.Index(r.Chars[i:], []byte("]]>")); end >= 0 {
			return i + end
		}
	}
	if end := bytes.IndexByte(r.Chars[i:], '<'); end >= 0 {
		return i + end
	}
	return len(r.Chars)
}

// trimmed returns the secret from start to end without blanks about it.
func (r *reader) trimmed(start, end int) edit {
	for start < end && (r.Chars[start] == ' ' || r.Chars[start] == '\n') {
		start++
	}
	for end > start && (r.Chars[end-1] == ' ' || r.Chars[end-1] == '\n') {
		end--
	}
	if isNothing(r.Chars[start:end]) {
		return edit{}
	}
	return edit{start, end, secret}
}

// follow goes from the name that ends at i to where its secret would begin; 0 where it cannot be.
func (r *reader) follow(w *way, i int) int {
	for limit := i + maxToSecret; i < min(limit, len(r.Chars)); {
		c := r.Chars[i]
		switch {
		case c == ' ':
		case c == '\n':
			if i = r.nextLine(w, i); i == 0 || w.line {
				return i
			}
			continue
		case c == '"' || c == '\'':
			if w.sign != 0 || r.char(i-1) == ' ' && !w.comma {
				w.quote = c
				return i + 1
			}
		case w.sign == 0 && (c == ':' || c == '=') || w.sign != 0 && (c == '>' || c == '='):
			w.sign, w.tight = c, w.tight || w.words == 0
		case w.sign == 0 && looks[c] == isLetter:
			v := r.token(i)
			if !is(v.class, messages|openers) || is(v.class, openers) || w.words == near || r.looksMixed(i) {
				return r.unsigned(w, i)
			}
			w.passes(r.Chars[v.start:v.end], v.class)
			i = int(v.end)
			continue
		case c == '(' && w.sign == 0, c == '[' && w.sign != 0:
		case c == ',' && w.sign == 0 && w.quoted:
			w.comma = true
		case isMark(c) || isOneOf(c, "[<>;,)]}|"):
			return 0
		default:
			return r.unsigned(w, i)
		}
		i++
	}
	return 0
}

// token returns the letters at i as one word.
func (r *reader) token(i int) token {
	t := token{start: int32(i), end: int32(r.run(i, isLetter))}
	t.entry(r.Chars)
	return t
}

// passes takes account of a word between; "é" and its like say that the secret comes.
func (w *way) passes(text []byte, c class) {
	switch string(text) {
	case "e", "is", "foi", "era", "was":
		w.words, w.far = w.words+1, false
	default:
		if c != quoting {
			w.words++
			w.far = w.far || !is(c, connecting)
		}
	}
}

// nextLine returns where the secret may begin that a line's end at i stands before; 0 for none. It does in a part of
// a form, behind an empty line, and where a sign ends the line and no other key begins the next.
func (r *reader) nextLine(w *way, i int) int {
	lines := 0
	for ; r.char(i) == ' ' || r.char(i) == '\n'; i++ {
		if r.Chars[i] == '\n' {
			lines++
		}
	}
	switch {
	case w.quoted && w.sign == 0 && lines > 1:
		w.sign, w.line = ':', true
		return i
	case w.sign == 0 || lines > 1 || w.quote != 0 || r.isKeyAt(i):
		return 0
	}
	w.words++ // it has to look like one
	return i
}

// isKeyAt reports whether a key and the sign that assigns its value stand at i.
func (r *reader) isKeyAt(i int) bool {
	for isAlnum(r.char(i)) || isOneOf(r.char(i), "_-.") {
		i++
	}
	return i == len(r.Chars) || isOneOf(r.Chars[i], `=:"'`)
}

// unsigned is i where a secret may begin there without a sign before it.
func (r *reader) unsigned(w *way, i int) int {
	if w.sign == 0 && (w.far || !isAlnum(r.Chars[i]) || !isOneOf(r.char(i-1), " (")) {
		return 0
	}
	return i
}

// looksMixed reports whether the token at i is made of letters and digits, so that it is no word.
func (r *reader) looksMixed(i int) bool {
	v := r.Chars[i:r.tokenEnd(i)]
	return bytes.ContainsAny(v, "0123456789") && mixes(v)
}

// secretEnd returns where the secret that begins at i ends; i where a mark is in it.
func (r *reader) secretEnd(i int, w *way) int {
	gap := 0
	for j := i; j < len(r.Chars); j++ {
		c := r.Chars[j]
		switch {
		case w.quote != 0 && c == w.quote:
			return j
		case isMark(c):
			if w.line && gap > 0 {
				return gap
			}
			return i
		case c == '\n':
			if w.line || gap == 0 {
				for r.Chars[j-1] == ' ' && j > i {
					j--
				}
				return j
			}
			return gap
		case c == ' ' && gap == 0:
			gap = j
		}
		if w.line || w.quote != 0 || gap == 0 && !isOneOf(c, `"'<>|`) && (!isOneOf(c, ",;&)]}") || r.goesOnSecretly(j+1)) {
			continue
		}
		if isMark(r.char(j + 1)) {
			return i
		}
		if w.class == cookie && c == ';' {
			return r.cookiesEnd(j)
		}
		return j
	}
	if w.line || gap == 0 {
		return len(r.Chars)
	}
	return gap
}

// isOwnLine reports whether nothing but a key and its sign stands before i on a line that is not the first: a part of
// a settings file, whose values need no quotation marks.
func (r *reader) isOwnLine(i int) bool {
	line := bytes.LastIndexByte(r.Chars[max(0, i-maxToSecret):i], '\n')
	if line < 0 {
		return false
	}
	key := bytes.Trim(r.Chars[max(0, i-maxToSecret)+line+1:i], " -:=")
	return !bytes.ContainsFunc(key, func(c rune) bool { return c < 0x80 && !isAlnum(byte(c)) && !isOneOf(byte(c), "_.-") })
}

// goesOnSecretly reports whether a secret goes on at i, behind a sign that may end it: neither nothing follows nor
// another key.
func (r *reader) goesOnSecretly(i int) bool {
	return (isAlnum(r.char(i)) || isOneOf(r.char(i), "!@#$%*")) && !r.isKeyAt(i)
}

// cookieAttributes are no cookies.
const cookieAttributes = " path domain expires max-age samesite "

// cookiesEnd returns the end of the cookies that go on with the ';' at i.
func (r *reader) cookiesEnd(i int) int {
	for r.char(i) == ';' {
		from := r.pastBlanks(i + 1)
		end := from
		for end < len(r.Chars) && !isOneOf(r.Chars[end], "; ,\n\"'[") && !isMark(r.Chars[end]) {
			end++
		}
		name, _, isPair := strings.Cut(strings.ToLower(string(r.Chars[from:end])), "=")
		if !isPair || strings.Contains(cookieAttributes, " "+name+" ") {
			return i
		}
		i = end
	}
	return i
}

// isSecret reports whether the characters from start to end are a secret and no word of a message.
func (r *reader) isSecret(start, end int, w *way) bool {
	v := r.Chars[start:end]
	if isNothing(v) {
		return false
	}
	first := r.token(start)
	known := first.class != unknown && first.class != street && (int(first.end) == end || isOneOf(r.Chars[first.end], " .!?"))
	switch {
	case w.class == cookie:
		return bytes.IndexByte(v, '=') >= 0
	case w.sign == 0 && w.quote == 0:
		return looksSecret(v, w.words == 0 && w.class == secretive, w.class == token_)
	case known && (w.sign == 0 || w.quote == 0 && (w.sign != '=' || !w.tight) || bytes.IndexByte(v, ' ') >= 0):
		return false
	case w.words > 0:
		return looksSecret(v, false, false)
	case w.class == token_ && !w.quoted && (w.sign != '=' || !w.tight):
		return bytes.ContainsFunc(v, isAnyLetter) && (len(v) >= likelySecret && mixes(v) || len(v) >= 2*longSecret)
	}
	return len(v) >= shortSecret
}

func isAnyLetter(c rune) bool { return c >= 0x80 || looks[c] == isLetter }

// isNothing reports whether v stands for no value, or hides one already.
func isNothing(v []byte) bool {
	switch strings.ToLower(string(v[:min(len(v), 10)])) {
	case "null", "nil", "none", "undefined", "empty", "true", "false", "n/a":
		return true
	}
	for _, c := range v {
		if isMark(c) {
			return true
		}
	}
	return !bytes.ContainsFunc(v, func(c rune) bool { return isAnyLetter(c) || '0' <= c && c <= '9' })
}

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
