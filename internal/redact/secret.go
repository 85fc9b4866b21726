package redact

import (
	"bytes"
	"slices"
)

// A secret (R32) stands behind a word that names it (senha=…, <senhaPrestador>…, Authorization: Bearer …). One that
// shows by itself (a JSON web token, a private key, a vendor's token) has a notation. Nothing is taken if a mark stands
// between the word and its secret.

const (
	maxToSecret  = 60 // characters between a word and its secret
	shortSecret  = 3  // characters of a secret that a sign assigns
	likelySecret = 8  // characters of one behind a vague word
	longSecret   = 16
)

var (
	identifierRest, tagRest = pattern("identifierRest"), pattern("tagRest")
	assigned, told          = pattern("assigned"), pattern("told")
	hashScheme, titledKey   = pattern("hashScheme"), pattern("titledKey")
	nothing, mixed          = pattern("nothing"), pattern("mixed")
)

// way is what stands between a word and its secret.
type way struct {
	class  class
	sign   class // ':', '=' or '>', which assigns it; 0 for none
	quote  byte  // opens the secret; 0 for none
	words  int
	far    bool // some of the words do more than connect
	quoted bool // the word itself is quoted: a key of JSON
	line   bool // the secret is all of a line
}

// secretAt returns the secret that the word i announces.
func (r *reader) secretAt(i int) edit {
	w := way{class: r.classes[i]}
	if w.class == engineKey && r.has(r.start(i), "key") && (is(r.class(i-1), "wS") || is(r.class(i-2), "wS")) {
		w.class = secretive // API key
	}
	first, last := r.nameStart(i), i+r.match(identifierRest, i+1)
	from, end := r.start(first), r.end(last)
	isShouted := bytes.IndexByte(r.Chars[from:end], '_') >= 0 &&
		!bytes.ContainsFunc(r.Chars[r.start(i):end], isSmallRune)
	isFault := isMessage[r.class(first)] || bytes.IndexByte(r.classes[i:last+1], '_') >= 0
	if !is(w.class, secrets) || r.tellsFault(i+1, last) || end-r.end(i) >= maxToSecret ||
		isShouted && r.char(end) != '=' && isFault { // WRONG_PASSWORD: x, but not DB_PASSWORD: x
		return edit{}
	}
	if r.char(from-1) == '<' {
		if tag := tagRest.Find(r.Chars[end:]); tag != nil {
			return r.textAt(end + len(tag))
		}
	}
	if r.has(from, "--") && r.char(end) == ' ' {
		return edit{end + 1, r.secretEnd(end+1, &w), secret}
	}
	w.quoted = is(r.char(end), `"'`) && r.char(from-1) == r.char(end)
	isFirst := bytes.HasSuffix(bytes.TrimRight(r.Chars[max(0, from-maxToSecret):from], " -"), []byte("\n"))
	start := r.follow(&w, last+1)
	v, to := r.lookup(start)
	switch {
	case start == 0, w.sign == 0 && w.class == header, r.has(start, "-----BEGIN"), v.class == digest:
		return edit{} // it has a notation, perhaps
	case v.class == scheme && r.char(to) == ' ':
		start = r.run(to, isBlank)
	}
	w.quoted = w.quoted || w.quote != 0 && r.char(r.start(i)-1) == '_'                      // keystore_pass: "changeit"
	w.line = w.quote == 0 && w.sign != 0 && w.words == 0 && w.class == secretive && isFirst // a settings file's
	end = r.secretEnd(start, &w)
	for all := r.run(start, isDigit) == end; all && is(r.char(end), " -.") && looks[r.char(end+1)] == isDigit; {
		end = r.run(end+1, isDigit)
	}
	isObject := w.sign == 0 && w.quote != 0 && // Kubernetes: secret "x" not found
		(r.has(end+1, " not found") || r.has(end+1, " is forbidden"))
	if isObject || !r.isSecret(start, end, &w) {
		return edit{}
	}
	return edit{start, end, secret}
}

// nameStart returns the first token of the identifier that the word i is a part of.
func (r *reader) nameStart(i int) int {
	first := i
	for r.start(i)-r.start(first) < maxToSecret && (r.isWord(first-1) || is(r.class(first-1), "_-:")) {
		first--
	}
	return first
}

// tellsFault reports whether the tokens from i to last, of an identifier, tell what is wrong with a secret:
// SenhaInvalida, PASSWORD_EXPIRED.
func (r *reader) tellsFault(i, last int) bool {
	isNumbered := r.class(last) == number && r.size(last) > maxShort
	return bytes.ContainsAny(r.classes[i:last+1], connecting+"E") || isNumbered || isAlnum(r.char(r.end(last)))
}

// textAt returns the secret that is the whole text of an element; the text begins at i.
func (r *reader) textAt(i int) edit {
	over := "<"
	if r.has(i-len("[CDATA["), "[CDATA[") {
		over = "]]>"
	}
	v, _, _ := bytes.Cut(r.Chars[i:], []byte(over))
	isMentioned := r.has(i-len("> "), "> ") && !r.has(i+len(v), "</") // AUTH <password> called
	if v = bytes.TrimSpace(v); isMentioned || isNothing(v) {
		return edit{}
	}
	return edit{i, i + len(v), secret}
}

// follow goes from the token i, behind a secret's name, and notes in w what it passes. It returns where the secret
// would begin; 0 where there can be none.
func (r *reader) follow(w *way, i int) (start int) {
	from := r.start(i)
	end := from
	m := assigned.FindSubmatchIndex(r.tokensAt(i))
	if m != nil && (r.classes[i+m[4]] != '>' || r.size(i+m[4]) > 1) {
		w.sign = r.classes[i+m[4]]
		if m[6] < m[7] { // on the line below it has to look like a secret
			w.words = near / 2
		}
		end, start = r.start(i+m[4]), r.start(i+m[1])
		if m[8] < m[9] {
			w.quote = r.char(start - 1)
		}
	} else if m = told.FindSubmatchIndex(r.ahead(from, 2*maxToSecret)); m != nil && m[4] >= 0 {
		end, start, w.quote = from+m[3], from+m[5], r.char(from+m[4])
	} else if m != nil {
		end, start = from+m[3], from+m[6]
		if bytes.IndexByte(r.Chars[end:start], '-') >= 0 {
			w.words++ // senha - Abc123
		}
	}
	for e := range r.words(from, end) {
		if e.class != quoting {
			w.words++
			w.far = w.far || !connects[e.class] && e.kind != id
		}
	}
	if w.words > near {
		return 0
	}
	return start
}

// keyEnd returns where the letters, digits and signs of a key at i end.
func (r *reader) keyEnd(i int) int {
	for most := i + maxNoted; i < most && (isAlnum(r.char(i)) || is(r.char(i), "_-.")); {
		i++
	}
	return i
}

// secretEnd returns the end of the secret that begins at i: its quotation mark, its line's end, or else a blank or a
// sign behind which it does not go on.
func (r *reader) secretEnd(i int, w *way) int {
	ends, others := " \"'<>|\n", ",;&)]}"
	if w.line {
		ends, others = "\n", ""
	} else if w.quote != 0 {
		end := i + bytes.IndexAny(r.Chars[i:], string(w.quote)+"\n")
		if end >= i && r.Chars[end] == w.quote {
			return end
		}
		ends, others = " \n", "" // it was cut off, perhaps
	}
	end := i + len(hashScheme.Find(r.ahead(i, maxToSecret)))
	for end < len(r.Chars) && !is(r.Chars[end], ends) &&
		(!is(r.Chars[end], others) || r.goesOnSecretly(end+1)) {
		end++
	}
	return i + len(bytes.TrimRight(r.Chars[i:end], " "))
}

// goesOnSecretly reports whether a secret goes on at i, behind a sign that may end it: something follows, and it is no
// other key.
func (r *reader) goesOnSecretly(i int) bool {
	key := r.keyEnd(i)
	return (isAlnum(r.char(i)) || is(r.char(i), "!@#$%*")) && key < len(r.Chars) && !is(r.Chars[key], `=:"'`) &&
		!titledKey.Match(r.ahead(i, maxToSecret))
}

// isSecret reports whether the characters from start to end are a secret and no word of a message.
func (r *reader) isSecret(start, end int, w *way) bool {
	v := r.Chars[start:end]
	if isNothing(v) || w.class == opaque && bytes.Contains(v, []byte("://")) { // tokenUrl=https://
		return false
	}
	first, to := r.lookup(start)
	known := !is(first.class, "ughryat") && to > start && (to == end || is(r.char(to), " .!?"))
	switch {
	case w.sign == 0 && w.far && (w.class != opaque || !isRandom(v) || r.class(r.tokenAtOrBehind(start)) == fixed):
		return false
	case w.sign == 0 && w.quote == 0:
		return looksSecret(v, w.words == 0 && w.class == secretive, w.class == opaque)
	case known && (w.sign == 0 || w.quote == 0 && (w.sign != '=' || w.words > 0) || bytes.IndexByte(v, ' ') >= 0):
		return false
	case w.words > 0:
		isAlone := to == end && (end == len(r.Chars) || is(r.Chars[end], "\n;")) && len(v) > maxShort+1 &&
			w.words < near/2 && !endsAsMessage(r.Chars[start:end]) // senha do portal: Girassol
		return w.class == secretive && isAlone || looksSecret(v, w.class == secretive && !w.far, false)
	case w.class == opaque && !w.quoted && (w.sign != '=' || w.words > 0):
		return bytes.ContainsFunc(v, isAnyLetter) && (len(v) >= likelySecret && mixed.Match(v) || len(v) >= 2*longSecret)
	}
	return len(v) >= shortSecret
}

func isAnyLetter(c rune) bool { return c >= 0x80 || looks[c] == isLetter }
func isSmallRune(c rune) bool { return 'a' <= c && c <= 'z' }

// isNothing reports whether v is no value, such as null or ***, or has a mark in it.
func isNothing(v []byte) bool { return nothing.Match(v) || slices.ContainsFunc(v, isMark) }

// looksSecret reports whether a token that no sign assigns looks like a secret: it has letters, and digits or signs
// that no word has. Right behind its name (direct) digits alone will do; behind a vague name it has to be long.
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
