// Package text reads error texts as people see them: without accents, entities, escapes and damaged encodings.
package text

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// readRune returns the first character of s, which must not be empty, and its length in bytes. It decodes HTML entities
// and JSON escapes, even if escaped again, and UTF-8 that was mistaken for Latin-1 or Windows-1252. A byte that is not
// UTF-8 is read as Latin-1, which TISS messages use.
func readRune(s string) (rune, int) {
	switch c := s[0]; {
	case c == '&':
		return readEntity(s)
	case c == '\\':
		return readEscape(s)
	case c == 0xc3 && 0x84 <= at(s, 1) && at(s, 1) < 0xc0:
		return 0xc0 | rune(s[1]&0x3f), 2 // a shortcut for most accented letters; Â and Ã are ambiguous and read below
	case c >= utf8.RuneSelf:
		return readMojibake(s)
	default:
		return rune(c), 1
	}
}

const (
	maxNesting    = 4  // levels of escaping: %252522, &amp;amp;quot;
	maxBackslash  = 64 // backslashes in a run that are read at once
	longestEntity = 28 // bytes, with its levels
)

// entity is an HTML entity that is escaped again and again, or no entity.
var entity = regexp.MustCompile(`^&(?:amp;){0,4}(#?[0-9A-Za-z]{1,9};)?`)

func readEntity(s string) (rune, int) {
	m := entity.FindStringSubmatch(s[:min(len(s), longestEntity)])
	decoded := html.UnescapeString("&" + m[1])
	if r, size := utf8.DecodeRuneInString(decoded); size == len(decoded) {
		return r, len(m[0])
	}
	return '&', len(m[0]) - len(m[1]) // unknown, or only its beginning is known
}

// readEscape reads an escape of JSON, Go or Java.
func readEscape(s string) (rune, int) {
	i := 1
	for i < maxBackslash && at(s, i) == '\\' {
		i++
	}
	switch c := at(s, i); c {
	case '"', '\'', '/':
		return rune(c), i + 1
	case 'n':
		return '\n', i + 1
	case 'r', 't':
		return ' ', i + 1
	case 'u', 'x':
		digits := 4
		if c == 'x' {
			digits = 2
		}
		if r, ok := hex(s, i+1, digits); ok {
			return r, i + 1 + digits
		}
	}
	return '\\', i
}

// hex returns the value of the n hexadecimal digits at s[i:], and whether there are n.
func hex(s string, i, n int) (v rune, ok bool) {
	for j := i; j < i+n; j++ {
		switch c := at(s, j); {
		case isDigit(c):
			v = v<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			v = v<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// windows1252 holds Windows-1252's characters from 0x80 on, where Latin-1 has controls.
var windows1252 = []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")

// readDamaged guesses the letter behind a U+FFFD: ã or á, the most frequent in Portuguese, or ç before another one
// (autoriza��o). It guesses only before a letter.
func readDamaged(s string, size int) (rune, int) {
	next := at(s, size)
	switch {
	case size == 1:
		return rune(s[0]), 1
	case next < utf8.RuneSelf && !isLetter(next):
		return ' ', size
	case next >= utf8.RuneSelf:
		return 'c', size
	default:
		return 'a', size
	}
}

// readMojibake returns the first character of s. Two characters that were one in UTF-8 become that one again: Ã© is é.
func readMojibake(s string) (rune, int) {
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError {
		return readDamaged(s, size)
	}
	if r != 'Ã' && r != 'Â' || len(s) == size {
		return r, size
	}
	second, more := utf8.DecodeRuneInString(s[size:])
	if second < 0x80 || second > 0xbf {
		place := slices.Index(windows1252, second)
		if place < 0 {
			return r, size
		}
		second = 0x80 + rune(place)
	}
	if r == 'Ã' {
		second += 0x40
	}
	return second, size + more
}

// Results of likeness for characters that resemble no ASCII character.
const (
	Sign   = 0xfd + iota
	Small  // a lower-case letter
	Letter // any other letter
)

// likeness returns the ASCII character that r resembles, in r's case: the letter without its accent, a decimal digit of
// any script, or plain spaces, hyphens and quotation marks. It returns 0 for invisible characters: controls, characters
// of no width, lone accents.
func likeness(r rune) byte {
	switch {
	case ' ' <= r && r < 0x7f:
		return byte(r)
	case r == '\t', r == '\r':
		return ' '
	case r == '\n', r == 0x85, r == 0x2028, r == 0x2029:
		return '\n'
	case alike[r] != 0:
		return alike[r]
	case 0xff01 <= r && r <= 0xff5e: // full-width ASCII
		return byte(r - 0xfee0)
	case unicode.IsDigit(r):
		return '0' + decimal(r)
	case unicode.In(r, unicode.Cf, unicode.Cc, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(unicode.Zs, r):
		return ' '
	case unicode.Is(unicode.Pd, r):
		return '-'
	case !unicode.IsLetter(r):
		return Sign
	case unicode.IsLower(r):
		return Small
	}
	return Letter // also of scripts without case
}

// decimal returns the value of a Unicode decimal digit. Blocks of such digits begin at a zero, in tens.
func decimal(r rune) (value byte) {
	for unicode.IsDigit(r - rune(value) - 1) {
		value++
	}
	return value % 10
}

//go:embed alike.txt
var alikeLines string

// alike maps characters to the ASCII one that they resemble, which begins their line in alike.txt.
var alike = func() map[rune]byte {
	table := make(map[rune]byte)
	for line := range strings.Lines(alikeLines) {
		for _, r := range line[len("a "):] {
			table[r] = line[0]
		}
	}
	delete(table, '\n')
	return table
}()

// at returns the byte at i, 0 outside s.
func at(s string, i int) byte {
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// Hidden reports whether a character is invisible or acts on its surroundings: controls, soft hyphens, marks of
// direction and of no width, line separators.
func Hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Printable reports whether s can be an id or a name: stores take no other text.
func Printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// Inert returns s as one line without hidden characters, except the joiners of scripts and emoji. Line breaks and tabs
// become blanks. Other hidden characters (such as the ESC of an ANSI sequence) and invalid UTF-8 become U+FFFD.
func Inert(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case ' ' <= r && r < 0x7f, r == '\u200c', r == '\u200d':
			return r
		case '\t' <= r && r <= '\r', r == 0x85, r == 0x2028, r == 0x2029:
			return ' '
		case Hidden(r):
			return utf8.RuneError
		}
		return r
	}, s)
}

// InertJSON returns the same JSON with nothing in it that a terminal, an editor or a browser acts on. It escapes <, >
// and &, and hidden characters that one \u escape can write. Invalid UTF-8 becomes U+FFFD. text must be valid JSON, in
// which such characters stand only in strings.
func InertJSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, acts) && utf8.Valid(text) {
		return text
	}
	b := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if acts(r) {
			b = fmt.Appendf(b, `\u%04x`, r)
		} else {
			b = utf8.AppendRune(b, r)
		}
		text = text[size:]
	}
	return b
}

func acts(r rune) bool {
	return r == '<' || r == '>' || r == '&' || r >= 0x7f && r <= 0xffff && Hidden(r)
}

// JSON encodes v in one line, without escaping HTML. It panics if v cannot be encoded.
func JSON(v any) []byte {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	if err := to.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Object is a JSON object with its members in order.
type Object []Member

// Member is a member of an Object: an Object, []any, string, json.Number, bool or nil.
type Member struct {
	Name  string
	Value any
}

// Get returns the value at a dotted path of names, or nil.
func (o Object) Get(path string) any {
	name, rest, deeper := strings.Cut(path, ".")
	for _, m := range o {
		if m.Name != name {
			continue
		}
		if below, is := m.Value.(Object); is && deeper {
			return below.Get(rest)
		}
		return m.Value
	}
	return nil
}

// Decode decodes a JSON text. An object with two members of one name is an error: readers differ in which they take.
func Decode(encoded []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(encoded))
	d.UseNumber()
	return decode(d)
}

func decode(d *json.Decoder) (any, error) {
	begin, err := d.Token()
	delim, nested := begin.(json.Delim)
	if err != nil || !nested {
		return begin, err
	}
	o, list, seen := Object{}, []any{}, map[json.Token]bool{}
	for d.More() {
		var name json.Token
		if delim == '{' {
			if name, err = d.Token(); err != nil {
				return nil, err
			}
			if seen[name] {
				return nil, fmt.Errorf("the field %.60q is given twice in one object, expected once", name)
			}
			seen[name] = true
		}
		value, err := decode(d)
		if err != nil {
			return nil, err
		}
		if delim == '[' {
			list = append(list, value)
		} else {
			o = append(o, Member{fmt.Sprint(name), value})
		}
	}
	if _, err = d.Token(); delim == '{' {
		return o, err
	}
	return list, err
}
