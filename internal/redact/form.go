package redact

import (
	"slices"
	"strconv"
	"strings"
)

// proof is what makes a form a datum.
type proof uint8

const (
	byForm      proof = iota // the form alone
	byHyphen                 // a hyphen before the last group
	byDigits                 // the check digits of its kind
	byPhone                  // a Brazilian number with its area code
	byPhoneMark              // the same, with a hyphen or parentheses: it has but eight digits after the area code
	byNine                   // a mobile number without area code
	byAmerican               // 415-555-2671
)

// form is a way to write a number: how long its groups are and what may stand between them.
type form struct {
	kind    kind
	proof   proof
	between separators
	lengths []int
}

const (
	odd    = blank | dot | dash | slash | comma | plus | low
	spaced = blank | dot | dash | plus
	dialed = blank | dot | dash | paren | plus
)

// ways returns the forms of a kind that are listed by the lengths of their groups.
func ways(k kind, p proof, between separators, list string) []form {
	var all []form
	for _, way := range strings.Fields(list) {
		f := form{kind: k, proof: p, between: between}
		for _, length := range strings.Split(way, "-") {
			n, _ := strconv.Atoi(length)
			f.lengths = append(f.lengths, n)
		}
		all = append(all, f)
	}
	return all
}

// grouped is a CPF as it is printed on the card, with any separators.
var grouped = &certain[0]

// certain are the forms that check digits prove or that are nobody else's, in the order they are tried; longer before
// shorter.
var certain = slices.Concat(
	ways(cpf, byForm, odd, "3-3-3-2"),
	ways(cpf, byForm, dash, "9-2"),
	ways(id, byHyphen, dot|dash, "2-3-3-1"), // RG
	ways(cpf, byDigits, odd, "11 9-2 3-3-5 3-6-2 3-8 6-3-2 6-5 1-1-1-1-1-1-1-1-1-1-1"),
	ways(cns, byDigits, odd, "15 3-4-4-4 3-12 11-4"),
	ways(card, byDigits, spaced, "4-4-4-4-3 4-4-4-4-2 4-4-4-4-1 4-4-4-7 4-4-4-6 4-4-4-5 4-4-4-4 4-4-4-3 4-4-4-2 4-4-4-1 4-6-5 4-6-4"),
	ways(card, byDigits, odd, "13 14 15 16 17 18 19"),
)

// likely are the forms that look like a datum.
var likely = slices.Concat(
	ways(cns, byForm, spaced, "3-4-4-4"),
	ways(phone, byPhone, dialed, "2-2-1-4-4 2-2-5-4 2-2-9 2-7-4 2-11 2-10 4-5-4 4-9 9-4 2-1-4-4 3-1-4-4 2-5-4 3-5-4 7-4 11 12 13"),
	ways(phone, byPhoneMark, dialed, "2-2-4-4 2-2-8 2-6-4 4-4-4 2-4-4 3-4-4"),
	ways(phone, byPhone, blank|dash|paren|plus, "2-9 3-9"),
	ways(phone, byPhoneMark, blank|dash|paren, "2-8"),
	ways(phone, byPhoneMark, dash, "6-4"),
	ways(phone, byAmerican, dialed, "3-3-4"),
	ways(phone, byAmerican, blank|dash|dot|paren, "3-7"),
	ways(phone, byNine, dash, "5-4"),
)

// certainAt is the certain form that begins with the group `from`: its kind and its last group's end.
func (c *cluster) certainAt(from int) (kind, int) {
	for i := range certain {
		f := &certain[i]
		if c.fit(f, from) && c.allows(f, from) && c.proves(f, from) {
			return f.kind, from + len(f.lengths)
		}
	}
	return none, 0
}

// likelyAtFirst is the likely form that begins the cluster; opened: behind a '(' or '+'. One in which
// a certain form begins is none: what is left of the certain one would stay.
func (c *cluster) likelyAtFirst(opened bool) (kind, int) {
	limit := 0
	for i := range likely {
		f := &likely[i]
		if !c.fit(f, 0) || !c.allows(f, 0) || !c.looks(f, opened) {
			continue
		}
		if limit == 0 {
			limit = c.untilCertain()
		}
		if len(f.lengths) <= limit {
			return f.kind, len(f.lengths)
		}
	}
	return none, 0
}

// untilCertain is how many groups stand before the first certain form that does not begin the cluster.
func (c *cluster) untilCertain() int {
	for from := 1; from < c.n; from++ {
		if k, _ := c.certainAt(from); k != none {
			return from
		}
	}
	return c.n
}

// allows checks the separators. A comma is the decimal sign unless a hyphen follows it.
func (c *cluster) allows(f *form, from int) bool {
	between := c.between(from, from+len(f.lengths))
	if between&^f.between != 0 {
		return false
	}
	last := c.groups[from+len(f.lengths)-1].before
	return between&comma == 0 || last&(dash|slash) != 0
}

func (c *cluster) proves(f *form, from int) bool {
	switch f.proof {
	case byForm:
		return true
	case byHyphen:
		return c.groups[from+len(f.lengths)-1].before == dash
	}
	return verified(c.span(from, from+len(f.lengths))) == f.kind
}

func (c *cluster) looks(f *form, opened bool) bool {
	d := c.span(0, len(f.lengths))
	switch between := c.between(0, len(f.lengths)); f.proof {
	case byPhone:
		return isBrazilian(d)
	case byPhoneMark:
		return isBrazilian(d) && (opened || between&(dash|paren) != 0)
	case byNine:
		return d[0] == 9
	case byAmerican:
		return d[0] >= 2 && d[3] >= 2 && (opened || len(f.lengths) == 3 && (between == dash || between == dot))
	}
	return startsCNS(d)
}

// international is how many groups behind a '+' are a telephone number; 0 for none. A country code and
// eight to fifteen digits (E.164); a blank ends it once eleven are there.
func (c *cluster) international() int {
	if c.digits[0] == 5 && c.digits[1] == 5 {
		if k, n := c.likelyAtFirst(true); k == phone {
			return n
		}
	}
	n, limit := 1, c.untilCertain()
	for n < limit && c.groups[n].before&^dialed == 0 && c.count(n+1) <= 15 {
		before := c.groups[n].before
		if c.count(n) >= 11 && before&blank != 0 || n > 2 && before&paren != 0 {
			break
		}
		n++
	}
	if 8 <= c.count(n) && c.count(n) <= 15 {
		return n
	}
	return 0
}

// labelled is how many groups are the number that a label of kind k stands before. direct: right
// behind it. Blanks join groups only where the first are too short to be the number.
func (c *cluster) labelled(k kind, direct bool) int {
	r, limit := reaches[k], c.untilCertain()
	if !direct {
		return c.most(limit, r.nearLeast, r.nearMost, dot|dash|low)
	}
	if k == cpf || k == taxpayer {
		if n := c.most(limit, 11, 11, odd); n > 0 {
			return n
		}
	}
	joints := dot | dash | low
	if k == birth {
		joints |= slash
	}
	n := c.most(limit, r.least, r.most, joints)
	if n > 0 && c.count(n) >= min(8, r.most) {
		return n
	}
	return max(n, c.most(limit, r.least, r.most, dialed|low))
}

// most is the largest number of the first groups, up to limit, that are joined by such separators and
// have least to most digits.
func (c *cluster) most(limit, least, most int, joints separators) int {
	best := 0
	for n := 1; n <= limit && c.count(n) <= most; n++ {
		if n > 1 && c.groups[n-1].before&^joints != 0 {
			break
		}
		if c.count(n) >= least {
			best = n
		}
	}
	return best
}
