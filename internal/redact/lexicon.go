package redact

import (
	"embed"
	"iter"
	"slices"
	"strings"
)

// class is what the rules see of a token: a sign itself, or the letter that words.txt gives a word.
type class = byte

const (
	unknown, article, given, saint, initial             = 'u', 'a', 'g', 'h', 'I'
	element, quoting, house, stop, paper, health        = 'E', 'v', 'd', 'x', 'p', 'e'
	writer, currency                                    = 'Y', '9'
	counter, offset                                     = 'o', 'j'
	keepOne, keepAll, engineKey, company, claim         = 'Q', 'A', 'J', 'C', 'c'
	person, named, vague, login, kin, staff, worker     = 'P', 'N', 'V', 'W', 'K', 'T', 'X'
	secretive, header, opaque, scheme, digest, keyOwner = 'S', 'D', 'O', 'B', 'M', 'w'

	number, date   = '0', '1' // digits, and those of a date or time
	fixed, hosted  = '2', '3' // what stays whatever it holds: a UUID, a hash, a claim's id; a URL's host
	mark, nameMark = '4', '5' // a placeholder, and that of a name; '6' is that of a secret
	endTag, url    = 1, 2     // </name and ://
	wide           = 3        // blanks that separate columns
	keyed          = 'k'      // a word that might begin a name, but is a key: nome_arquivo, ana=
)

// Sets of classes.
const (
	numberish  = "0123"
	marks      = "456"
	labels     = "L78"         // a number of their kind follows
	keeping    = "QAZJ"        // what follows is nobody's
	leading    = "UGHR"        // a name may begin with them
	capitals   = leading + "I" // leading, or an initial
	lowered    = "ughr"        // leading, in small letters
	nameable   = capitals + lowered + "a"
	givens     = "gG"
	streets    = "rR"
	strange    = "uUk"          // not in the lexicon, or a key
	persons    = "PN"           // a name follows
	workers    = "TX"           // a name follows under conditions
	counting   = "oj"           // the number that follows is a count
	filling    = "fon"          // "informado" and the like
	connecting = "aqKTXfojneFi" // words between a label and its datum
	messages   = connecting + "EvpdxWwmzt"
	secrets    = "SDO"
	hard       = ";!?&"
	assigning  = ":=>\"'"
)

// set is a set of characters or classes.
type set [256]bool

func setOf(classes string) *set {
	var s set
	for _, c := range []byte(classes) {
		s[c] = true
	}
	return &s
}

var (
	isName, isHeading, isTrigger = setOf(nameable), setOf("L78NPKTXqQA"), setOf("PNKTXVW85")
	connects, isMessage, isNoted = setOf(connecting), setOf(messages), setOf(noted)
)

// entry is what the lexicon knows of a word.
type entry struct {
	class class
	kind  kind
}

//go:embed *.txt
var data embed.FS

// lines yields the parts of the lines of a file of data that have n of them, with tabs between.
func lines(file string, n int) iter.Seq[[]string] {
	content, _ := data.ReadFile(file) // it is embedded
	return func(yield func([]string) bool) {
		for line := range strings.Lines(string(content)) {
			if part := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(part) == n && !yield(part) {
				return
			}
		}
	}
}

const longestWord = 32 // bytes of a word in the lexicon, at most

// lexicon is words.txt, which says how it is written.
var lexicon = func() map[string]entry {
	lexicon := make(map[string]entry)
	var e entry
	for part := range lines("words.txt", 1) {
		line := part[0]
		if strings.HasPrefix(line, "#") {
			continue
		}
		if head, rest, found := strings.Cut(line, ":"); found {
			e, line = entry{head[0], kindNamed(strings.TrimPrefix(head[1:], "/"))}, rest
		}
		for _, word := range strings.Fields(line) {
			stem, isInflected := strings.CutSuffix(word, "*")
			for _, ending := range []string{"", "o", "a", "os", "as"} {
				if _, isKnown := lexicon[stem+ending]; !isKnown && isInflected == (ending != "") {
					lexicon[stem+ending] = e
				}
			}
		}
	}
	return lexicon
}()

// kindNamed returns the kind of that name; none where there is none.
func kindNamed(name string) kind {
	return kind(max(0, slices.IndexFunc(kinds[:], func(k kindInfo) bool { return k.name == name })))
}

// kind of a personal datum.
type kind uint8

const (
	none kind = iota
	cpf
	cns
	card
	phone
	mail
	name
	birth
	id
	address
	user
	secret
	record   // a label only, of a number that may be short: a medical record, an identity card
	taxpayer // a label only, "CPF/CNPJ": a person's number is taken, a company's stays
	nobodys  // of a field whose numbers stay
)

// kindInfo is a kind's name in words.txt, its placeholder, and how many digits its numbers have: least to most right
// behind their label, nearLeast to nearMost a few words after it. A most of 0 lets no number count.
type kindInfo struct {
	name, placeholder                string
	least, most, nearLeast, nearMost int
}

var kinds = [...]kindInfo{
	none:     {name: "none"},
	cpf:      {"cpf", "[CPF]", 8, 14, 11, 11}, // leading zeros lost; a digit too many
	cns:      {"cns", "[CNS]", 11, 16, 15, 15},
	card:     {"card", "[CARD]", 5, 20, 13, 20}, // a TISS numeroCarteira has up to 20
	phone:    {"phone", "[PHONE]", 7, 15, 10, 13},
	mail:     {name: "mail", placeholder: "[E-MAIL]"},
	name:     {name: "name", placeholder: "[NAME]"},
	birth:    {"birth", "[BIRTHDATE]", 4, 8, 0, 0},
	id:       {"id", "[ID]", 6, 21, 0, 0},          // not from afar: six digits may be an ANS registry
	address:  {"address", "[ADDRESS]", 8, 8, 0, 0}, // CEP
	user:     {name: "user", placeholder: "[USER]"},
	secret:   {name: "secret", placeholder: "[SECRET]"},
	record:   {"record", "[ID]", 3, 20, 0, 0},
	taxpayer: {"taxpayer", "[CPF]", 8, 13, 11, 11},
	nobodys:  {name: "nobodys"},
}

// marked are the kinds that have a placeholder of their own, markClasses the classes of the placeholders of all kinds.
var marked = kinds[cpf:record]

const markClasses = " 44444544446"
