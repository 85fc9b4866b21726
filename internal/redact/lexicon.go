package redact

import (
	_ "embed"
	"slices"
	"strings"
)

// class says what a word does to the text behind it.
type class uint8

const (
	unknown   class = iota // may be a name
	article                // may stand within a name, and connects
	label                  // a number, date or address of its kind follows
	person                 // a person's name or number follows
	named                  // a name follows
	vague                  // a name follows, if it has two words
	login                  // a user's name follows
	qualifier              // named: "nome completo"; connects
	filler                 // of an error text; it may stand between a label and its number
	health                 // the same, and makes "cartão" a CNS
	fielded                // the same: "campo 'x'": a validator quotes where it found it
	element                // such a field, that does not connect
	quoting                // "value 'x'": a validator quotes what it found
	paper                  // may stand between a document's label and its number
	street                 // begins an address
	house                  // a name of no person follows: Hospital Dr. Mário Gatti
	stop                   // no part of a name
	keep                   // the next number is nobody's: protocol, guide, batch
	keepAll                // the numbers of the list that follows
	engineKey              // the next number is an engine's key or an instant, if it is as long as one
	registry               // the next number is the ANS's, if it has six digits
	company                // the next number may be a company's
	currency               // the next number is an amount
	claim                  // begins a claim's id
	secretive              // a password or key follows
	header                 // one follows a sign that assigns it
	cookie                 // the same, in pairs
	opaque                 // one follows, if it looks like one
	scheme                 // credentials follow: Bearer, Basic
	digest                 // the same, in pairs
	logon                  // user and password follow: scott/tiger@
	keyOwner               // makes "key" a secret's
	vendor                 // begins a vendor's token: ghp_…
	segment                // of HL7, which holds a person's data
	farewell               // a name follows on the next line
	caller                 // a name follows "para", "com": ligar, falar
	team                   // of a hospital, and no person
	saint                  // begins a hospital's name, or is a part of a person's
	given                  // a given name
	ending                 // of words of messages: suspenso, recusou, ambulatorial
)

var classNames = strings.Fields(`unknown article label person named vague login qualifier filler health field
	element quoting paper street house stop keep keepAll engineKey registry company currency claim secretive
	header cookie opaque scheme digest logon keyOwner vendor segment farewell
	caller team saint given ending`)

// classes is a set of them.
type classes uint64

func is(c class, set classes) bool { return set>>c&1 == 1 }

func setOf(all ...class) (set classes) {
	for _, c := range all {
		set |= 1 << c
	}
	return set
}

var (
	connecting = setOf(article, qualifier, filler, health, fielded)
	keeping    = setOf(keep, keepAll, engineKey, registry)
	nameable   = setOf(unknown, article, vendor, street, saint, given)
	fields     = setOf(fielded, element)
	secrets    = setOf(secretive, header, opaque)
	// messages are the words of error texts.
	messages = connecting | setOf(element, quoting, paper, house, stop, login, keyOwner, caller, farewell)
)

// entry is what the lexicon knows of a word.
type entry struct {
	class class
	kind  kind
}

//go:embed words.txt
var words string

const longestWord = 32 // bytes of one in the lexicon, at most

// lexicon is words.txt, which says how it is written.
var lexicon = func() map[string]entry {
	lexicon := make(map[string]entry)
	var e entry
	for line := range strings.Lines(words) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if head, rest, found := strings.Cut(line, ":"); found {
			class, kind, _ := strings.Cut(head, "/")
			e, line = entry{classNamed(class), kindNamed(kind)}, rest
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

func classNamed(name string) class { return class(slices.Index(classNames, name)) }

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
	taxpayer // a label only, "CPF/CNPJ": a company's number stays, a person's goes
	nobodys  // numbers that stay
)

// kindInfo is a kind's name in words.txt, what stands where a datum was, and how many digits a number has: right behind
// its label, and a few words after it; none where most is 0.
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
	nobodys:  {},
}

// marked are the kinds that have a placeholder of their own.
var marked = kinds[cpf:record]
