package redact

import (
	"slices"
	"strings"
	"unicode"
)

// Credentials in the forms that programs have for them: tokens, keys, log-ons, headers.

// takeOpenSecret redacts the secret at pos that needs no word before it.
func (s *scanner) takeOpenSecret() bool {
	rest := s.in[s.pos:]
	start, end := 0, 0
	if c := rest[0]; c != 'e' && c != 'A' && c != 'B' {
		return false
	}
	switch {
	case opensSecret(rest):
		end = webTokenEnd(rest)
	case strings.HasPrefix(rest, "BEGIN ") && strings.HasSuffix(s.in[:s.pos], "-----"):
		const key = "PRIVATE KEY-----"
		start = strings.Index(rest[:min(len(rest), 60)], key)
		if start < 0 || strings.ContainsFunc(rest[:start], func(r rune) bool { return r != ' ' && !unicode.IsLetter(r) }) {
			return false
		}
		if start, end = start+len(key), strings.Index(rest, "-----END"); end < start {
			end = len(rest)
		}
	}
	if end-start < maxWebToken || placeholderAt(rest[start:]) != none {
		return false
	}
	s.redact(s.pos+start, s.pos+end, secret)
	return true
}

// HoldsOwn reports whether s may hold a secret of this program's own: a token of people, or of a webhook.
func HoldsOwn(s string) bool {
	s = strings.ToLower(s)
	return strings.Contains(s, "rwt_") || strings.Contains(s, "whsec_")
}

// opensSecret reports whether s begins as web tokens and some vendors' keys do.
func opensSecret(s string) bool {
	return strings.HasPrefix(s, "eyJ") || strings.HasPrefix(s, "AIza") || strings.HasPrefix(s, "AKIA") ||
		strings.HasPrefix(s, "ASIA")
}

// webTokenEnd returns the end of the letters, digits and signs that tokens for the web are made of.
func webTokenEnd(s string) int {
	return len(s) - len(strings.TrimLeftFunc(s, func(r rune) bool {
		return r < 0x80 && (classes[r] == letter || classes[r] == digit || strings.ContainsRune("-_.=~+/", r))
	}))
}

// takeLogon redacts user and password where w is an option or a word that they stand behind: curl -u ana:abc,
// jdbc:oracle:thin:ana/abc@host.
func (s *scanner) takeLogon(w *word) bool {
	from, joint := pastBlanks(s.in, w.end), ":"
	switch option := s.in[w.start:w.end]; {
	case w.role&logons != 0:
		from, joint = pastBlanks(s.in, w.end+len(s.in[w.end:])-len(strings.TrimPrefix(s.in[w.end:], ":"))), "/"
	case from > w.end && (option == "p" || option == "w") && strings.HasSuffix(s.in[:w.start], " -"):
		text := strings.Trim(s.in[from:s.secretEnd(from+opened(s.in[from:]), &way{}, w)], `"'`)
		if strings.Contains(text, "{") || !looksSecret(text, false, false) {
			return false
		}
		from += opened(s.in[from:])
		s.redact(from, from+len(text), secret)
		return true
	case from == w.end || option != "u" && option != "user" || !strings.HasSuffix(s.in[:w.start], "-"):
		return false
	}
	quoted := 0
	end := from
	for ; end < len(s.in) && end-from < maxTag; end++ {
		c := s.in[end]
		if c == '\n' || c == '[' || c == ' ' && quoted%2 == 0 || c == '@' && joint == "/" {
			break
		}
		if c == '"' || c == '\'' {
			quoted++
		}
	}
	text := s.in[from:end]
	if i := strings.Index(text, joint); i < 1 || i == len(text)-1 || quoted%2 != 0 ||
		joint == "/" && !strings.HasPrefix(s.in[end:], "@") {
		return false
	}
	s.redact(from, end, user)
	return true
}

// opened is 1 where s begins with a quotation mark.
func opened(s string) int {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		return 1
	}
	return 0
}

// credentials returns what stands right behind the name of a scheme: Bearer eyJ…, Basic dXNlcjpzZW5oYQ==.
func (s *scanner) credentials(w *word) (start, end int) {
	start = pastBlanks(s.in, w.end)
	if w.role&pairs != 0 {
		const response = `response="`
		line, _, _ := strings.Cut(s.in[start:min(len(s.in), start+maxDigest)], "\n")
		if i := strings.Index(line, response); i >= 0 {
			start += i + len(response)
			end = start + strings.IndexByte(s.in[start:]+`"`, '"')
		}
		return start, end
	}
	end = start + webTokenEnd(s.in[start:])
	if t := s.in[start:end]; start == w.end || len(t) < likelySecret || !mixes(t) {
		return 0, 0
	}
	return start, end
}

// cookieAttributes are no cookies.
var cookieAttributes = []string{"path", "domain", "expires", "max-age", "samesite"}

// cookieEnd returns the end of the cookies that go on with the ';' at i.
func (s *scanner) cookieEnd(i int) int {
	for i < len(s.in) && s.in[i] == ';' {
		from := pastBlanks(s.in, i+1)
		end := from
		for end < len(s.in) && !strings.ContainsRune("; ,\n\"'[", rune(s.in[end])) {
			end++
		}
		name, _, isPair := strings.Cut(strings.ToLower(s.in[from:end]), "=")
		if !isPair || slices.Contains(cookieAttributes, name) {
			return i
		}
		i = end
	}
	return i
}
