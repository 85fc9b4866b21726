package redact

import (
	"slices"
	"strconv"
	"strings"
)

const (
	maxGroups = 12 // one digit each and no more is the longest form of a CPF
	maxRun    = 21 // digits of a group; one longer than any number is of no kind
	maxGap    = 3  // separators between two groups, as in ") - "
	maxRead   = 36 // digits after which no further group is read: a number and what may overlap it
	maxDigits = maxRead + maxRun
)

// separators is a set of them.
type separators uint16

const (
	blank separators = 1 << iota
	dot
	dash
	slash
	comma
	paren
	plus
	low // underscore, asterisk and the like
	colon
)

// group is a run of digits, unseen characters within it included.
type group struct {
	start, end int
	size       int        // digits, maxRun for more
	before     separators // between the group before and this one
	gap        int        // how many they are
}

// cluster is digits that may be one number: groups with separators between them, as far as one number may reach.
type cluster struct {
	groups [maxGroups]group
	n      int
	sum    [maxGroups + 1]int // digits before each group
	digits [maxDigits]byte
	whole  bool // nothing follows that may belong to it
}

// read takes the digits at s[i:] as a cluster.
func (c *cluster) read(s string, i int) {
	g := group{start: i}
	for c.n < maxGroups && c.sum[c.n] < maxRead {
		c.run(s, &g)
		c.groups[c.n] = g
		c.n++
		c.sum[c.n] = c.sum[c.n-1] + min(g.size, maxRun-1)
		if g.size == maxRun {
			return
		}
		if g = gapAt(s, g.end); g.gap == 0 {
			c.whole = true
			return
		}
	}
}

// run reads the digits of a group.
func (c *cluster) run(s string, g *group) {
	d := c.digits[c.sum[c.n]:]
	for i := g.start; i < len(s); {
		r, w := charAt(s, i)
		i += w
		if r == unseen {
			continue
		}
		if !isDigit(r) {
			break
		}
		if g.size < maxRun-1 {
			d[g.size] = byte(r - '0')
		}
		g.size = min(g.size+1, maxRun)
		g.end = i
	}
}

// gapAt returns the group that begins behind the separators at s[i:]; its gap is 0 where none does.
func gapAt(s string, i int) group {
	g := group{}
	for {
		r, w := seenAt(s, i)
		if w > 0 && isDigit(r) {
			g.start = i
			return g
		}
		sep := separator(r)
		if sep == 0 || g.gap == maxGap {
			return group{}
		}
		g.before |= sep
		g.gap++
		i += w
	}
}

var separatorSets = [256]separators{
	' ': blank, '\n': blank, '\t': blank, '\r': blank, '.': dot, '-': dash, '/': slash, ',': comma, '(': paren, ')': paren,
	'+': plus, ':': colon, '_': low, '*': low, '|': low, '~': low,
}

func separator(r rune) separators { return separatorSets[max(0, min(r, 255))] }

// span returns the digits of the groups from and up to, but without, to.
func (c *cluster) span(from, to int) []byte { return c.digits[c.sum[from]:c.sum[to]] }

// count returns how many digits the first n groups have.
func (c *cluster) count(n int) int { return c.sum[n] }

// between returns the separators between the groups from … to−1.
func (c *cluster) between(from, to int) separators {
	var seen separators
	for _, g := range c.groups[from+1 : to] {
		seen |= g.before
	}
	return seen
}

// fit reports whether the groups from `from` on are as long as those of f.
func (c *cluster) fit(f *form, from int) bool {
	if from+len(f.lengths) > c.n {
		return false
	}
	for i, n := range f.lengths {
		if c.groups[from+i].size != n {
			return false
		}
	}
	return true
}

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

// forms are ways to write numbers by the length of the first group, in the order they are tried.
type forms [maxRun + 1][]form

func newForms(lists ...[]form) *forms {
	var t forms
	for _, f := range slices.Concat(lists...) {
		t[f.lengths[0]] = append(t[f.lengths[0]], f)
	}
	return &t
}

// grouped is a CPF as it is printed on the card, with any separators.
var grouped = &certain[3][0]

// certain are the forms that check digits prove or that are nobody else's, in the order they are tried; longer before
// shorter.
var certain = newForms(
	ways(cpf, byForm, odd|colon, "3-3-3-2"),
	ways(cpf, byForm, dash, "9-2"),
	ways(id, byHyphen, dot|dash, "2-3-3-1"), // RG
	ways(cpf, byDigits, odd, "11 9-2 3-3-5 3-6-2 3-8 6-3-2 6-5 1-1-1-1-1-1-1-1-1-1-1"),
	ways(cns, byDigits, odd, "15 3-4-4-4 3-12 11-4"),
	ways(card, byDigits, spaced, "4-4-4-4-3 4-4-4-4-2 4-4-4-4-1 4-4-4-7 4-4-4-6 4-4-4-5 4-4-4-4 4-4-4-3 4-4-4-2 "+
		"4-4-4-1 4-6-5 4-6-4"),
	ways(card, byDigits, odd, "13 14 15 16 17 18 19"),
)

// likely are the forms that look like a datum.
var likely = newForms(
	ways(cns, byForm, spaced, "3-4-4-4"),
	ways(phone, byPhone, dialed, "2-2-1-4-4 2-2-5-4 2-2-9 2-7-4 2-11 2-10 4-5-4 4-9 9-4 2-1-4-4 3-1-4-4 2-5-4 3-5-4 "+
		"7-4 11 12 13"),
	ways(phone, byPhoneMark, dialed, "2-2-4-4 2-2-8 2-6-4 4-4-4 2-4-4 3-4-4"),
	ways(phone, byPhone, blank|dash|paren|plus, "2-9 3-9"),
	ways(phone, byPhoneMark, blank|dash|paren, "2-8"),
	ways(phone, byPhoneMark, dash, "6-4"),
	ways(phone, byAmerican, dialed, "3-3-4"),
	ways(phone, byAmerican, blank|dash|dot|paren, "3-7"),
	ways(phone, byNine, dash, "5-4"),
)

// certainAt returns the certain form that begins with the group `from`: its kind and its last group's end.
func (c *cluster) certainAt(from int) (kind, int) {
	set := certain[c.groups[from].size]
	for i := range set {
		f := &set[i]
		if c.fit(f, from) && c.allows(f, from) && c.proves(f, from) {
			return f.kind, from + len(f.lengths)
		}
	}
	return none, 0
}

// likelyAtFirst returns the likely form that begins the cluster; opened: behind a '(' or '+'. One in which
// a certain form begins is none: what is left of the certain one would stay.
func (c *cluster) likelyAtFirst(opened bool) (kind, int) {
	limit := 0
	set := likely[c.groups[0].size]
	for i := range set {
		f := &set[i]
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

// untilCertain returns how many groups stand before the first certain form that does not begin the cluster.
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

// international returns how many groups behind a '+' are a telephone number; 0 for none. A country code and
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

// labelled returns how many groups are the number that a label of kind k stands before. direct: right
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

// most returns the largest number of the first groups, up to limit, that are joined by such separators and
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
