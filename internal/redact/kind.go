package redact

import "strings"

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
	// record is a label only, of a number that may be short: a medical record, an identity card.
	record
	// taxpayer is a label only, "CPF/CNPJ": a company's number stays, a person's goes.
	taxpayer
)

// marks stand where a datum was. A mark holds no digit, no blank and no character that ends a URL's
// path, so it is read again as what it replaced.
var marks = [...]string{
	cpf: "[CPF]", cns: "[CNS]", card: "[CARD]", phone: "[PHONE]", mail: "[E-MAIL]", name: "[NAME]",
	birth: "[BIRTHDATE]", id: "[ID]", address: "[ADDRESS]", user: "[USER]",
}

// plain is the kind whose mark stands for a datum that was labelled as k.
func (k kind) plain() kind {
	switch k {
	case record:
		return id
	case taxpayer:
		return cpf
	}
	return k
}

// markAt is the kind whose mark begins s; none where there is none.
func markAt(s string) kind {
	for k := cpf; k < record; k++ {
		if strings.HasPrefix(s, marks[k]) {
			return k
		}
	}
	return none
}

// reach says how many digits a labelled number of a kind has: right behind its label, and a few words
// after it; none where most is 0.
type reach struct{ least, most, nearLeast, nearMost int }

var reaches = [taxpayer + 1]reach{
	cpf:      {8, 14, 11, 11}, // leading zeros lost; a digit too many
	taxpayer: {8, 13, 11, 11},
	cns:      {11, 16, 15, 15},
	card:     {6, 20, 13, 20}, // a TISS numeroCarteira has up to 20
	phone:    {7, 15, 10, 13},
	id:       {6, 20, 0, 0}, // not from afar: six digits may be an ANS registry
	record:   {3, 15, 0, 0},
	birth:    {6, 8, 0, 0},
	address:  {8, 8, 0, 0}, // CEP
}
