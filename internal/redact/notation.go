package redact

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// notation is a way to write data that begins with a word. The groups of its form are named for what they hold: a
// kind; value, which is of the kind that the field's name says; person, a name, or people, one of two words or a given
// one.
type notation struct {
	class  class  // of the word
	before string // what may stand right before it
	form   *regexp.Regexp
	looks  func(v []byte) bool // whether the first group is one; nil where the form says it
}

// regular is a regular expression; N stands for a name's words, V for what is quoted, L for a letter.
func regular(s string) *regexp.Regexp {
	const letter, small = `[A-Za-z\x{fffd}]`, `[A-Za-z\x{fffd}'-]*`
	const words = `[A-Z\x{fffd}]` + small + `(?:[ +]+(?:(?:d[aeo]s?|e)[ +]+)?[A-Z\x{fffd}]` + small + `){0,5}`
	return regexp.MustCompile(`^(?:` + strings.NewReplacer("<N>", words, "<L>", letter).Replace(s) + `)`)
}

var privateKey = regular(`BEGIN [A-Z ]*PRIVATE KEY-----(?P<secret>(?s:.+?))(?:-----END|$)`)

var webToken = regular(`(?P<secret>(?:eyJ|AIza|AKIA|ASIA)[\w.=~+/-]{16,})`)

var credentials = `(?P<user>'[^'\n:]+:[^'\n]+'|"[^"\n:]+:[^"\n]+"|[^\s:'"]+:\S+)`

// letterhead is a line of a mail's head: De: Ana Reis <…>.
var letterhead = regular(`(?i:from|de|para|to|cco?): *["']?(?P<people><N>(?:, <N>)?)["']? *(?:[<\[]|\n[> ]*(?i:sent|enviad[ao]|dat[ea]|subject|assunto))`)

var notations = []notation{
	{vendor, "", regular(`(?P<secret>\w+[-_.][\w.=~+/-]{15,})`), nil},
	{unknown, "", webToken, nil},
	{unknown, "-", privateKey, nil},
	{scheme, "", regular(`\w+(?: *[:=] *| +)(?P<secret>[\w.=~+/-]{8,})`), mixes},
	{cookie, "", regular(`\w+["']? *[:=]+ *\[?["']?` +
		`(?P<secret>[^\s;,"'=]+=[^\s;,"'[]*(?:; ?[\w.-]+=[^\s;,"'[]*)*)`), nil},
	{stop, "", regular(`(?i:set-cookie)["']? *[:=]+ *\[?["']?(?P<secret>[^\s;,"'=]+=[^\s;,"'[]*)`), nil},
	{digest, "", regular(`\w+ \w+=[^\n]*?response="(?P<secret>[^"]*)`), nil},
	{unknown, "?&", regular(`state=(?P<secret>[\w.=~+/-]{8,})`), isOpaque},
	{filler, "?&", regular(`code=(?P<secret>[\w.=~+/-]{8,})`), isOpaque},
	{logon, "", regular(`\w+(?::| +)(?P<user>[^\s/@]+/[^\s@]+)@`), nil},
	{logon, "", regular(`\w+\(["'][^"'\n]*["'], *["'][^"'\n]*["'], *["'](?P<secret>[^"'\n]+)`), nil},
	{unknown, "-", regular(`u +` + credentials), nil},
	{login, "-", regular(`user +` + credentials), nil},
	{login, "", regular(`(?i)\w+[ :="'>]+(?P<user>[a-z]{2,}(?:\.[a-z]{2,})+)(?:[ \n"',;:)&<]|\. |\.?$)`), isPersons},
	{login, "", regular(`(?i)(?:uid|samaccountname)=(?P<user>[a-z][\w.-]+)(?:\)|,\w+=)`), nil},
	{unknown, "-", regular(`[pw] +["']?(?P<secret>[^\s"'{]+)`), looksMixed},
	{unknown, "-", regular(`p(?P<secret>[^\s"']{4,})`), isGlued},
	{qualifier, "\"", regular(`family" *: *"(?P<name>[^"\n]+)`), isCapital},
	{qualifier, "\"", regular(`given" *: *\[\s*"(?P<name>[^\]}:]+)"\s*\]`), isCapital},
	{segment, "", regular(`PID\|[^|\n]*\|[^|\n]*\|(?P<id>\w+)`), nil},
	{segment, "", regular(`(?:PID|NK1|GT1)[^\n]{0,80}?[|'": (]` +
		`(?P<name>[A-Z]<L>+(?:['-]<L>+)*\^[A-Z](?:[ '-]?[A-Za-z\x{fffd}^])*)` +
		`(?:\|[^|\n]*\|(?P<birth>\d{8})(?:\d*(?:\|[^|\n]*){3}\|(?P<address>[^|\n]{4,}))?)?`), nil},
	{unknown, "|", regular(`(?P<name><L>+\^<L>[^|\n\d]*)\|[^|\n]*\|(?P<birth>(?:19|20)\d{6})`), nil},
	{farewell, "", regular(`\w+(?:\([ao]\))?` +
		`(?:[.,!: ]*(?:\n|<br ?/?>)[ \n>]*(?P<person><N>)|[.,]+ *(?P<people><N>))`), nil},
	{caller, "", regular(`\w+,? (?:` +
		`(?:(?:para|pra|com|por|pel[ao]|ao|a|o|e|dona|seu|sra?\.?|(?:mae|pai|filh[ao]|espos[ao]|marido),?) |[pc]/ ?)+(?P<person><N>)|(?P<people><N>))`), nil},
	{article, "", letterhead, nil},
	{stop, "", letterhead, nil},
	{person, "", regular(`\w+ [^\n'\[]{0,40}\[:\w+='(?P<people>[^'\n]+)'`), nil},
	{unknown, `\/`, regular(`(?i:users|home)[\\/]+(?P<people><L>+(?:\.<L>+)*)(?:[\\/"'\s]|$)`), nil},
	{vague, "", regular(`\w+["']?: *["']?(?P<field>[\w.-]+)["']?,?\s+["']?value["']?: *["']?(?P<value>[^"'\n]+)`), nil},
	{fielded, "", regular(`\w+ ["'\x60](?P<field>[\w.]+)["'\x60][^\n'"]{0,40}: ["'](?P<value>[^"'\n]+)`), nil},
	{vague, "", regular(`(?i:nameid)[^<>]{0,200}>(?P<user>[^<@]+)`), nil},
	{element, "<:", regular(`\w+ [^<>]{0,99}?(?i:name)="(?P<field>[^"]+)"[^<>]{0,99}>` +
		`\s*<[\w:]*AttributeValue[^<>]{0,99}>(?P<value>[^<]+)`), nil},
	{street, "", regular(`(?P<address>\w+\.? [^\n;|<>()"\d]{3,80}\d[^\n;|<>()"]{0,40}?),? ?` +
		`\((?:endereco|residencia|logradouro)`), nil},
}

// noted are the classes of words with which a notation begins.
var noted = setOf(vendor, scheme, cookie, digest, logon, login, qualifier, segment, farewell, caller, vague, element,
	street, person, fielded)

// Characters of a notation, but for a secret that goes on: of one that a known word begins, and of others.
const maxNoted, maxUnknown = 640, 128

// notedAt takes the data in a notation that the word t begins, and returns where they end; 0 where there are none.
func (r *reader) notedAt(t *token) int {
	start := int(t.start)
	before := r.char(start - 1)
	isOption := before == '-' && isOneOf(r.char(start-2), " -\n\x00")
	isToken := isOneOf(r.Chars[start], "eA") && isOneOf(r.char(start+1), "yIKS") // webToken
	if !is(t.class, noted) && !isOption && !isOneOf(before, `?&|\/`) && !isToken &&
		!isOneOf(r.char(int(t.end)), ":-") {
		return 0
	}
	within := maxUnknown
	if is(t.class, noted) {
		within = maxNoted
	}
	rest := r.Chars[start:min(len(r.Chars), start+within)]
	for i := range notations {
		n := &notations[i]
		isMeant := n.before == "" || isOneOf(before, n.before) && (isOption || before != '-')
		if n.class != t.class || !isMeant {
			continue
		}
		if m := n.form.FindSubmatchIndex(rest); m != nil && (n.looks == nil || n.looks(rest[m[2]:m[3]])) {
			if end := r.takeGroups(n, start, len(rest), m); end > 0 {
				return end
			}
		}
	}
	return 0
}

// takeGroups takes what the groups m of a match at start hold, and returns where it ends; 0 where it is nobody's.
func (r *reader) takeGroups(n *notation, start, within int, m []int) (read int) {
	field := none
	for i, group := range n.form.SubexpNames() {
		if m[2*i] < 0 || group == "" {
			continue
		}
		from, end, k := start+m[2*i], start+m[2*i+1], kindNamed(group)
		switch group {
		case "field":
			if field = r.fieldKind(from, end); field == none {
				for t := range r.words(from, end) {
					field = max(field, map[class]kind{login: user, vague: name, opaque: secret}[t.class])
				}
			}
			continue
		case "value":
			k = r.suited(from, end, field)
		}
		if end == start+within {
			end = n.goOn(r, end)
		}
		if k == none && group != "value" { // person, people
			words, isGiven := 0, false
			end, words, isGiven = r.wordsEnd(from, end)
			isTitled := group == "person" && words > 0 && r.isTitled(from)
			if k = name; words < 2 && !isGiven && !isTitled {
				continue
			}
		}
		if k != none && r.redact(from, end, k) {
			read = end
		}
	}
	return read
}

// wordsEnd returns where the words from start to end do that may be a name's: before the first of messages. It also
// says how many they are, and whether a given name is among them.
func (r *reader) wordsEnd(start, end int) (last, words int, isGiven bool) {
	for t := range r.words(start, end) {
		if !is(t.class, nameable) || words == 0 && t.class == saint { // Santa Casa
			break
		}
		if t.class != article {
			last, words, isGiven = int(t.end), words+1, isGiven || t.class == given
		}
	}
	return last, words, isGiven
}

// isTitled reports whether the word at i is written as names are, and is like no word of a message.
func (r *reader) isTitled(i int) bool {
	t := r.lookup(i)
	return t.size() > maxShort && isSmall(r.Chars[t.end-1]) && !r.endsAsMessage(&t)
}

// goOn returns the end of the secret that goes on at i.
func (n *notation) goOn(r *reader, i int) int {
	if n.form == privateKey {
		if end := bytes.Index(r.Chars[i:], []byte("-----END")); end >= 0 {
			return i + end
		}
		return len(r.Chars)
	}
	for i < len(r.Chars) && !isOneOf(r.Chars[i], " \n\"'") {
		i++
	}
	return i
}

// endings of hosts' and files' names.
var endings = strings.Fields("com br net org gov local java xml json")

// isPersons reports whether v is a person's user name, and neither a host's nor a file's.
func isPersons(v []byte) bool {
	last := string(bytes.ToLower(v[bytes.LastIndexByte(v, '.')+1:]))
	return !slices.Contains(endings, last)
}

// isOpaque reports whether v is of letters and digits as no code of an error is.
func isOpaque(v []byte) bool {
	return bytes.ContainsAny(v, "0123456789") && bytes.ContainsFunc(v, isSmallRune)
}

func looksMixed(v []byte) bool { return looksSecret(v, false, false) }

// isGlued reports whether v is a password behind the letter of its option: -pSecret.
func isGlued(v []byte) bool { return looksMixed(v) || 'A' <= v[0] && v[0] <= 'Z' }

// isCapital reports whether v begins as a name does and has no digit.
func isCapital(v []byte) bool {
	return looks[v[0]] == isLetter && !isSmall(v[0]) && !bytes.ContainsAny(v, "0123456789")
}

func isSmallRune(c rune) bool { return 'a' <= c && c <= 'z' }
