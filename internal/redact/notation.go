package redact

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// notation is a way to write a secret that begins with a word.
type notation struct {
	class  class          // of the word
	before string         // what may stand right before it
	within int            // so many characters it begins and ends, if nothing ends it sooner
	form   *regexp.Regexp // the secret is its group
	kind   kind
	looks  func(v []byte) bool // whether the group is one; nil where the form says it
}

var privateKey = regexp.MustCompile(`^BEGIN [A-Z ]*PRIVATE KEY-----((?s:.+?))(?:-----END|$)`)

var userName = regexp.MustCompile(`(?i)^\w+[ :="'>]+([a-z]{2,}(?:\.[a-z]{2,})+)(?:[ \n"',;:)&<]|\. |\.?$)`)

var webToken = regexp.MustCompile(`^((?:eyJ|AIza|AKIA|ASIA)[\w.=~+/-]{16,})`)

var notations = []notation{
	{vendor, "", 128, regexp.MustCompile(`^(\w+[-_.][\w.=~+/-]{15,})`), secret, nil},
	{unknown, "", 128, webToken, secret, nil},
	{unknown, "-", 128, privateKey, secret, nil},
	{scheme, "", 128, regexp.MustCompile(`^\w+(?: *[:=] *| +)([\w.=~+/-]{8,})`), secret, mixes},
	{digest, "", 600, regexp.MustCompile(`^\w+ \w+=[^\n]*?response="([^"]*)`), secret, nil},
	{unknown, "?&", 128, regexp.MustCompile(`^state=([\w.=~+/-]{8,})`), secret, isOpaque},
	{filler, "?&", 128, regexp.MustCompile(`^code=([\w.=~+/-]{8,})`), secret, isOpaque},
	{logon, "", 128, regexp.MustCompile(`^\w+(?::| +)([^\s/@]+/[^\s@]+)@`), user, nil},
	{unknown, "-", 128, regexp.MustCompile(`^u +('[^'\n:]+:[^'\n]+'|"[^"\n:]+:[^"\n]+"|[^\s:'"]+:\S+)`), user, nil},
	{login, "-", 128, regexp.MustCompile(`^user +('[^'\n:]+:[^'\n]+'|"[^"\n:]+:[^"\n]+"|[^\s:'"]+:\S+)`), user, nil},
	{login, "", 128, userName, user, isPersons},
	{login, "", 128, regexp.MustCompile(`(?i)^(?:uid|samaccountname)=([a-z][\w.-]+)(?:\)|,\w+=)`), user, nil},
	{logon, "", 400, regexp.MustCompile(`^\w+\(["'][^"'\n]*["'], *["'][^"'\n]*["'], *["']([^"'\n]+)`), secret, nil},
	{qualifier, "\"", 128, regexp.MustCompile(`^family" *: *"([^"\n]+)`), name, isCapital},
	{qualifier, "\"", 256, regexp.MustCompile(`^given" *: *\[\s*"([^\]}:]+)"\s*\]`), name, isCapital},
	{unknown, "-", 128, regexp.MustCompile(`^[pw] +["']?([^\s"'{]+)`), secret, looksMixed},
	{unknown, "-", 128, regexp.MustCompile(`^p([^\s"']{4,})`), secret, isGlued},
}

// noted are the classes of words with which a notation begins.
var noted = setOf(vendor, scheme, digest, logon, login, qualifier)

// notedAt returns the secret in a notation that the word t begins.
func (r *reader) notedAt(t *token) edit {
	start := int(t.start)
	before := r.char(start - 1)
	isOption := before == '-' && isOneOf(r.char(start-2), " -\n\x00")
	if !is(t.class, noted) && !isOption && !isOneOf(before, "?&") && !isOneOf(r.Chars[start], "eA") {
		return edit{}
	}
	for i := range notations {
		n := &notations[i]
		isMeant := n.before == "" || isOneOf(before, n.before) && (isOption || before != '-')
		if n.class != t.class || !isMeant {
			continue
		}
		rest := r.Chars[start:min(len(r.Chars), start+n.within)]
		m := n.form.FindSubmatchIndex(rest)
		if m == nil || n.looks != nil && !n.looks(rest[m[2]:m[3]]) {
			continue
		}
		end := start + m[3]
		if m[3] == n.within {
			end = n.goOn(r, end)
		}
		return edit{start + m[2], end, n.kind}
	}
	return edit{}
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
