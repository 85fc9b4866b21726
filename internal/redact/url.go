package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// at takes an '@', which with the local part before it may be an e-mail address.
func (s *scanner) at(w int) {
	start := s.localStart()
	end := domainEnd(s.in, s.pos+w, s.before.label == mail && s.before.direct)
	if start == s.pos || end == 0 {
		s.separator('@', w)
		return
	}
	k := mail
	if domain := s.in[s.pos+w : end]; strings.HasSuffix(domain, "whatsapp.net") || domain == "c.us" {
		k = phone // a WhatsApp account is a telephone number
	}
	s.undo(s.local)
	s.state = s.before
	s.redact(start, end, k)
	s.local = noLocal
}

const maxLocal = 64 // bytes of an e-mail address's local part

// quote takes a '"', which may open the local part of an e-mail address: "maria silva"@x.
func (s *scanner) quote(w int) {
	for i := s.pos + w; s.mails && i < len(s.in) && i-s.pos <= maxLocal; {
		r, size := charAt(s.in, i)
		i += size
		if r == '\n' || r == '[' {
			break
		}
		if r != '"' || size != w {
			continue
		}
		if sign, n := seenAt(s.in, i); sign == '@' {
			if end := hostEnd(s.in, i+n); end > 0 {
				s.redact(s.pos, end, mail)
				return
			}
		}
		break
	}
	s.separator('"', w)
}

// hostEnd returns the end of the domain or of the single label at s[i:]; 0 for none.
func hostEnd(s string, i int) int {
	end, _ := labelEnd(s, i)
	return max(end, domainEnd(s, i, true))
}

var spelledMail = regexp.MustCompile(`(?i)^[\pL\d._+-]{1,64} {0,2}[(\[{](?:at|arroba)[)\]}] {0,2}\pL[\pL\d-]{0,62}` +
	`(?:(?: ?[(\[{](?:dot|ponto)[)\]}] ?|\.)[\pL\d][\pL\d-]{0,62}){0,5}`)

// spellsAt reports whether an '@' is spelled out in s.
func spellsAt(s string) bool {
	for i := 0; ; i++ {
		closer := strings.IndexAny(s[i:], ")]}")
		if closer < 0 {
			return false
		}
		i += closer
		if i > 2 && strings.EqualFold(s[i-2:i], "at") || i > 6 && strings.EqualFold(s[i-6:i], "arroba") {
			return true
		}
	}
}

// takeSpelled redacts the e-mail address at pos whose '@' is spelled out: maria (at) x.
func (s *scanner) takeSpelled() bool {
	if s.pos > 0 && strings.IndexByte(" \t\n\"'<(,;:=", s.in[s.pos-1]) < 0 {
		return false
	}
	end := len(spelledMail.FindString(s.in[s.pos:min(len(s.in), s.pos+8*maxLocal)]))
	if end == 0 {
		return false
	}
	s.redact(s.pos, s.pos+end, mail)
	s.local = noLocal
	return true
}

// localStart returns where the local part before pos begins; pos where there is none.
func (s *scanner) localStart() int {
	if s.local == noLocal {
		return s.pos
	}
	i := s.local
	for i < s.pos && strings.IndexByte(".'-+", s.in[i]) >= 0 {
		i++
	}
	return i
}

// domainEnd returns the end of the longest domain at s[i:] whose last label begins with two letters; 0 for
// none. A single label will do where simple.
func domainEnd(s string, i int, simple bool) int {
	best := 0
	for labels := 0; ; labels++ {
		end, lettered := labelEnd(s, i)
		if end == 0 {
			return best
		}
		if lettered && (labels > 0 || simple) {
			best = end
		}
		r, w := seenAt(s, end)
		if r != '.' {
			return best
		}
		i = end + w
	}
}

// labelEnd returns the end of the domain label at s[i:], and whether it begins with two letters; 0 for none.
func labelEnd(s string, i int) (end int, lettered bool) {
	letters, size := 0, 0
	for i < len(s) {
		r, w := charAt(s, i)
		i += w
		switch {
		case r == unseen:
			continue
		case unicode.IsLetter(r):
			if letters == size {
				letters++
			}
			end = i
		case isDigit(r):
			end = i
		case r != '-' || size == 0:
			return end, letters > 1
		}
		size++
	}
	return end, letters > 1
}

// colon takes a ':', which with "//" behind it opens a URL's authority. Hosts and paths stay as they
// are; the query is text like any other.
func (s *scanner) colon(w int) {
	first, w1 := seenAt(s.in, s.pos+w)
	second, w2 := seenAt(s.in, s.pos+w+w1)
	if first != '/' || second != '/' {
		s.separator(':', w)
		return
	}
	s.local = noLocal
	s.state.separate(':')
	s.pos += w + w1 + w2
	start, at, end := s.pos, s.pos, s.pos
	for end < len(s.in) {
		r, w := charAt(s.in, end)
		if (r == '/' || endsPath(r)) && s.in[end] != '%' {
			break
		}
		if r == '@' {
			at = end
		}
		end += w
	}
	if at == start {
		at = passwordEnd(s.in, start, end)
	}
	if at > start {
		s.redact(start, at, user)
		end = max(end, at)
	}
	s.state.number()
	s.local = noLocal
	s.pos = end
	if end >= s.pathEnd {
		s.pathEnd = pathEnd(s.in, end)
	}
}

// maxPassword bytes behind the slash in a URL's password.
const maxPassword = 64

// passwordEnd returns where user and password end that begin the authority s[start:end], which a slash in the password
// ends; start where there are none.
func passwordEnd(s string, start, end int) int {
	_, port, found := strings.Cut(s[start:end], ":")
	if !found || strings.Trim(port, "0123456789]:") == "" || strings.Contains(s[start:end], "[") {
		return start
	}
	path := s[end:pathEnd(s[:min(len(s), end+maxPassword)], end)]
	if i := strings.LastIndexByte(path, '@'); i >= 0 && !strings.Contains(path, "[") {
		return end + i
	}
	return start
}

// pathEnd returns where the URL's path that begins at i ends.
func pathEnd(s string, i int) int { return until(s, i, endsPath) }

// endsPath reports whether r ends the authority or path of a URL within a text.
func endsPath(r rune) bool {
	return strings.ContainsRune("?# \n\r\t\"'<>,;|&", r)
}
