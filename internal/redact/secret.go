package redact

import (
	"cmp"
	"strings"
	"unicode"
)

// Secrets (R32): what stands behind a word for one (senha=…, <senhaPrestador>…, Authorization: Bearer …), and what
// shows by itself that it is one (a JSON web token, a private key, a vendor's token). Whatever is looked at on the way
// from the word to its secret holds nothing personal, and where a placeholder stands on it nothing is taken, so that a
// second reading takes nothing more.

const (
	maxToSecret  = 60 // characters between a word and its secret
	maxTag       = 300
	maxDigest    = 600
	shortSecret  = 3 // characters of one that a sign assigns
	likelySecret = 8 // of one that a vague word stands before
	longSecret   = 16
	maxWebToken  = 20 // bytes that a shorter one does not have
)

// takeSecret redacts the secret that w says follows.
func (s *scanner) takeSecret(w *word) bool {
	if w.role&(secrets|tokens|schemes|vendors) == 0 && !s.isKey(w) {
		return false
	}
	start, end := s.secretAt(w)
	if start >= end || placeholderAt(s.in[start:]) != none {
		return false
	}
	s.redact(start, end, secret)
	return true
}

// takeDue redacts the text of an element that is a secret, once its attributes are read.
func (s *scanner) takeDue() {
	if start := max(s.pos, s.due.start); start < s.due.end {
		s.redact(start, s.due.end, secret)
	}
	s.due = edit{}
}

// isKey reports whether w is the "key" of an API key, a private key and the like.
func (s *scanner) isKey(w *word) bool {
	const joints = "-_ "
	if w.role&keepsLong == 0 || w.start < 2 || !strings.EqualFold(s.in[w.start:w.end], "key") {
		return false
	}
	before := strings.TrimRight(s.in[max(0, w.start-longSecret):w.start], joints)
	name := before[strings.LastIndexFunc(before, func(r rune) bool { return !unicode.IsLetter(r) })+1:]
	return name != "" && wordAt(name, 0).role&keyOwners != 0
}

// way is what stands between a word and its secret.
type way struct {
	sign   rune // ':', '=' or '>', which assigns it; 0 for none
	tight  bool // the sign stands right behind the word
	words  int
	far    bool // words that do not merely connect are among them
	quote  rune // opens the secret; 0 for none
	size   int  // of the quotation mark
	quoted bool // the word itself is quoted: a key of JSON
	comma  bool // behind the word
	line   bool // the secret is all of a line
}

// secretAt returns the secret that w says follows; end is 0 where there is none.
func (s *scanner) secretAt(w *word) (start, end int) {
	if w.role&vendors != 0 {
		end = w.start + webTokenEnd(s.in[w.start:])
		if w.end < end && strings.IndexByte("-_.", s.in[w.end]) >= 0 && end-w.start >= maxWebToken {
			return w.start, end
		}
		return 0, 0
	}
	if w.role&schemes != 0 {
		return s.credentials(w)
	}
	from, ok := s.nameEnds(w)
	if !ok {
		return 0, 0
	}
	if start = s.tagEnd(w, from); start > 0 {
		s.due.start, s.due.end = trimmed(s.in, start, textEnd(s.in, start))
		return 0, 0
	}
	r, _ := seenAt(s.in, from)
	if strings.HasPrefix(s.in[nameStart(s.in, w):w.start], "--") && strings.HasPrefix(s.in[from:], " ") {
		from, w.role = from+1, w.role&^needsSign
		end = s.secretEnd(from, &way{}, w)
		return from, end
	}
	p := way{quoted: (r == '"' || r == '\'') && opener(s.in[:nameStart(s.in, w)]) == r}
	if start = s.follow(&p, from); start == 0 {
		return 0, 0
	}
	if p.sign == 0 && w.role&needsSign != 0 {
		return 0, 0
	}
	if v := letterWord(s.in, start); v.role&schemes != 0 {
		if v.role&pairs != 0 {
			return s.credentials(&v)
		}
		if i := pastBlanks(s.in, v.end); i > v.end {
			start = i
		}
	}
	p.line = p.line || p.quote == 0 && p.tight && w.role&(needsSign|tokens) == 0 && ownLine(s.in, start)
	end = s.secretEnd(start, &p, w)
	if !s.isSecret(s.in[start:end], &p, w) {
		return 0, 0
	}
	return start, end
}

// nameEnds returns where the identifier ends that w is a part of: senhaPrestador, client_secret_key. It is no secret's
// name where it tells what is wrong with one: SenhaInvalida, PASSWORD_EXPIRED.
func (s *scanner) nameEnds(w *word) (end int, ok bool) {
	i, digits := w.end, 0
	for i < len(s.in) {
		if i-w.end > maxToSecret {
			return 0, false
		}
		r, size := charAt(s.in, i)
		switch {
		case unicode.IsLetter(r):
			v := wordAt(s.in, i)
			if v.camel {
				v = humpAt(s.in, i, v.end)
			}
			if v.role&connects != 0 || digits > 0 || opensSecret(s.in[i:]) {
				return 0, false
			}
			i = v.end
			continue
		case isDigit(r):
			if digits++; digits > 3 {
				return 0, false
			}
		case (r == '_' || r == '-') && i+1 < len(s.in) && (classes[s.in[i+1]] == letter || classes[s.in[i+1]] == digit):
		case r == '[' && placeholderAt(s.in[i:]) != none:
			return 0, false
		default:
			capitals := s.in[w.start:i]
			joined := w.start > 0 && s.in[w.start-1] == '_' || strings.Contains(capitals, "_")
			return i, !joined || capitals != strings.ToUpper(capitals) || r == '='
		}
		i += size
	}
	return i, true
}

// nameStart returns where the identifier begins that w is a part of.
func nameStart(s string, w *word) int {
	from := max(0, w.start-maxToSecret)
	return from + len(strings.TrimRightFunc(s[from:w.start], func(r rune) bool {
		return unicode.IsLetter(r) || strings.ContainsRune(":_-", r)
	}))
}

// tagEnd returns where the text begins of the element that w names, whose name ends at i; 0 where it names none.
func (s *scanner) tagEnd(w *word, i int) int {
	if before := s.in[:nameStart(s.in, w)]; !strings.HasSuffix(before, "<") && !strings.HasSuffix(before, "&lt;") {
		return 0
	}
	for end := min(len(s.in), i+maxTag); i < end; {
		r, size := charAt(s.in, i)
		i += size
		switch {
		case r == '<', r == '/' && strings.HasPrefix(s.in[i:], ">"):
			return 0
		case r == '>':
			const cdata = "<![CDATA["
			return i + len(s.in[i:]) - len(strings.TrimPrefix(s.in[i:], cdata))
		}
	}
	return 0
}

// textEnd returns where the text of an element ends that begins at i.
func textEnd(s string, i int) int {
	if end := strings.Index(s[i:], "]]>"); end >= 0 && strings.HasSuffix(s[:i], "CDATA[") {
		return i + end
	}
	return until(s, i, func(r rune) bool { return r == '<' })
}

// trimmed returns s[start:end] without blanks at its ends and without the end of CDATA.
func trimmed(s string, start, end int) (int, int) {
	text := strings.TrimRight(s[start:end], " \t\r\n")
	left := strings.TrimLeft(text, " \t\r\n")
	if placeholderAt(left) != none || isNothing(left) {
		return 0, 0
	}
	return start + len(text) - len(left), start + len(text)
}

// follow goes from the name that ends at i to where its secret would begin; 0 where it cannot be.
func (s *scanner) follow(p *way, i int) int {
	for range maxToSecret {
		if i >= len(s.in) {
			return 0
		}
		r, size := charAt(s.in, i)
		switch {
		case r == unseen, r == ' ':
		case r == '\r' || r == '\n':
			blank := strings.TrimLeft(s.in[i:], "\r\n")
			if !p.quoted || p.sign != 0 || strings.Count(s.in[i:len(s.in)-len(blank)], "\n") < 2 {
				return 0
			}
			p.sign, p.line = ':', true // a part of a form, and its value behind an empty line
			return len(s.in) - len(blank)
		case r == '"' || r == '\'':
			if p.sign != 0 || s.in[i-1] == ' ' && !p.comma {
				p.quote, p.size = r, size
				return i + size
			}
		case p.sign == 0 && (r == ':' || r == '=') || p.sign != 0 && (r == '>' || r == '='):
			p.sign, p.tight = r, p.tight || p.words == 0
		case p.sign == 0 && unicode.IsLetter(r):
			v := wordAt(s.in, i)
			if v.role&(stops|connects) == 0 || v.role&begins&^quotes != 0 || p.words == near || looksMixed(s.in[i:]) {
				return s.unsigned(p, i)
			}
			switch text := s.in[v.start:v.end]; {
			case text == "é" || text == "is" || text == "foi" || text == "era" || text == "was":
				p.words, p.far = p.words+1, false
			case v.role&quotes == 0:
				p.words++
				p.far = p.far || v.role&connects == 0
			}
			i = v.end
			continue
		case r == '(' && p.sign == 0:
		case r == ',' && p.sign == 0 && p.quoted:
			p.comma = true
		case r == '[' && placeholderAt(s.in[i:]) == none && p.sign != 0:
		case r == '[' || strings.ContainsRune("<>;,)]}|", r):
			return 0
		default:
			return s.unsigned(p, i)
		}
		i += size
	}
	return 0
}

// unsigned is i where a secret may begin there without a sign before it.
func (s *scanner) unsigned(p *way, i int) int {
	if p.sign != 0 {
		return i
	}
	if r, _ := charAt(s.in, i); p.far || !unicode.IsLetter(r) && !isDigit(r) || i == 0 || s.in[i-1] != ' ' && s.in[i-1] != '(' {
		return 0
	}
	return i
}

// looksMixed reports whether the token that begins s is made of letters and digits, so that it is no word.
func looksMixed(s string) bool {
	return strings.ContainsAny(s[:webTokenEnd(s)], "0123456789") && mixes(s[:webTokenEnd(s)])
}

// secretEnd returns where the secret that begins at i ends; i where a placeholder is in it.
func (s *scanner) secretEnd(i int, p *way, w *word) int {
	blank := 0
	for j := i; j < len(s.in); {
		r, size := charAt(s.in, j)
		switch {
		case p.quote != 0 && r == p.quote && size == p.size:
			return j
		case r == '[' && placeholderAt(s.in[j:]) != none:
			if p.line {
				return cmp.Or(blank, i)
			}
			return i
		case r == '\n' || r == '\r':
			if p.line {
				return j
			}
			return cmp.Or(blank, j)
		case r == ' ' && blank == 0:
			blank = j
		}
		if !p.line && p.quote == 0 && (blank != 0 || strings.ContainsRune(`"'<>|`, r) ||
			strings.ContainsRune(",;&)]}", r) && !s.goesOn(j+size)) {
			switch {
			case strings.HasPrefix(s.in[j+size:], "["):
				return i
			case w.role&cookies != 0 && r == ';':
				return s.cookieEnd(j)
			}
			return j
		}
		j += size
	}
	if p.line {
		return len(s.in)
	}
	return cmp.Or(blank, len(s.in))
}

// ownLine reports whether nothing but a key and its sign stands before s[i:] on a line that is not the first: a part of
// a settings file, whose values need no quotation marks.
func ownLine(s string, i int) bool {
	line := strings.LastIndexByte(s[max(0, i-maxToSecret):i], '\n')
	if line < 0 {
		return false
	}
	key := strings.Trim(s[max(0, i-maxToSecret)+line+1:i], " \t-:=")
	return !strings.ContainsFunc(key, func(r rune) bool {
		return !unicode.IsLetter(r) && !isDigit(r) && !strings.ContainsRune("_.-", r)
	})
}

// goesOn reports whether a secret goes on at i, behind a sign that may end it: neither nothing follows nor another key.
func (s *scanner) goesOn(i int) bool {
	if i >= len(s.in) {
		return false
	}
	if r, _ := charAt(s.in, i); !unicode.IsLetter(r) && !isDigit(r) && !strings.ContainsRune("!@#$%*", r) {
		return false
	}
	name := strings.TrimLeftFunc(s.in[i:min(len(s.in), i+maxToSecret)], func(r rune) bool {
		return unicode.IsLetter(r) || isDigit(r) || strings.ContainsRune("_-.", r)
	})
	r, size := seenAt(name, 0)
	return size > 0 && r != '=' && r != ':' && r != '"' && r != '\''
}

// isSecret reports whether text, behind w on the way p, is a secret and no word of a message.
func (s *scanner) isSecret(text string, p *way, w *word) bool {
	if isNothing(text) {
		return false
	}
	v := letterWord(text, 0)
	known := v.role != 0 && (v.end == len(text) || text[v.end] == ' ' || strings.IndexByte(".!?", text[v.end]) >= 0)
	switch {
	case w.role&cookies != 0:
		return strings.Contains(text, "=")
	case p.sign == 0 && p.quote == 0:
		return looksSecret(text, p.words == 0 && w.role&secrets != 0, w.role&tokens != 0)
	case known && (p.sign == 0 || p.quote == 0 && (p.sign != '=' || !p.tight) || strings.Contains(text, " ")):
		return false
	case p.words > 0:
		return looksSecret(text, false, false)
	case w.role&tokens != 0 && !p.quoted && (p.sign != '=' || !p.tight):
		return strings.ContainsFunc(text, unicode.IsLetter) && (len(text) >= likelySecret && mixes(text) || len(text) >= 2*longSecret)
	}
	return len(text) >= shortSecret
}

// isNothing reports whether text stands for no value, or hides one already.
func isNothing(text string) bool {
	switch strings.ToLower(text) {
	case "null", "nil", "none", "undefined", "empty", "true", "false", "n/a":
		return true
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || isDigit(r) })
}

// looksSecret reports whether a token that no sign assigns is a secret by its looks: letters, and digits or signs that
// are in no word. Right behind its name digits alone will do; behind a vague name it is a long one.
func looksSecret(text string, direct, vague bool) bool {
	text = strings.TrimRight(text, ".:!?…")
	letters := strings.ContainsFunc(text, unicode.IsLetter)
	digits := strings.ContainsAny(text, "0123456789")
	small := strings.ToUpper(text) != text
	switch {
	case strings.Contains(text, "://") || strings.ContainsRune(text, '='):
		return false
	case vague:
		return len(text) >= longSecret && letters && digits
	case len(text) < 4:
		return false
	case direct && !letters:
		return digits && strings.Trim(text, "0123456789") == ""
	}
	return letters &&
		(digits && (small || direct && !strings.ContainsAny(text, "-_")) || strings.ContainsAny(text, "!@#$%*^+"))
}

// mixes reports whether text has what words have not: a digit, or a capital behind a small letter, or padding.
func mixes(text string) bool {
	small := false
	for _, r := range text {
		if isDigit(r) || small && unicode.IsUpper(r) {
			return true
		}
		small = unicode.IsLower(r)
	}
	return strings.HasSuffix(text, "==")
}

// letterWord returns the word that begins s[i:]; none where no letter does.
func letterWord(s string, i int) word {
	if i < len(s) {
		if r, _ := charAt(s, i); unicode.IsLetter(r) {
			return wordAt(s, i)
		}
	}
	return word{end: i}
}

// pastBlanks returns where what is behind the blanks at s[i:] begins.
func pastBlanks(s string, i int) int { return len(s) - len(strings.TrimLeft(s[i:], " ")) }
