package redact

import (
	"strconv"
	"strings"
)

const (
	maxGroups = 12 // one digit each and no more is the longest form of a CPF
	maxRun    = 21 // digits of a group that are read; one longer than any number is of no kind
	maxGap    = 3  // separators between two groups, as in ") - "
	maxRead   = 36 // digits after which no further group is read: a number and what may overlap it
)

// separators is a set of them.
type separators uint16

const (
	blank separators = 1 << iota
	dot
	hyphen
	slash
	decimal
	paren
	plus
	low // underscore, asterisk and the like
	colon

	odd    = blank | dot | hyphen | slash | decimal | plus | low
	spaced = blank | dot | hyphen | plus
	dialed = blank | dot | hyphen | paren | plus
)

var separatorSets = [256]separators{
	' ': blank, '\n': blank, '.': dot, '-': hyphen, '/': slash, ',': decimal, '(': paren, ')': paren, '+': plus,
	':': colon, '_': low, '*': low, '|': low, '~': low,
}

// cluster is numbers with separators between them, as far as one number may reach.
type cluster struct {
	r      *reader
	groups [maxGroups]int        // the tokens
	joints [maxGroups]separators // before each group
	n      int                   // groups of digits
	sum    [maxGroups + 1]int    // digits before each group
	all    [maxRead + 24]byte    // the digits
	until  int                   // groups before the first certain shape that does not begin it; 0 for not yet known
}

// clusterAt returns the cluster that the token i begins. A date ends it, but not where dates says so.
func (r *reader) clusterAt(i int, dates bool) *cluster {
	c := &r.cluster
	c.r, c.n, c.until = r, 0, 0
	joint := separators(0)
	for c.n < maxGroups && c.sum[c.n] < maxRead {
		c.groups[c.n], c.joints[c.n] = i, joint
		n := copy(c.all[c.sum[c.n]:min(len(c.all), c.sum[c.n]+maxRun)], r.Chars[r.start(i):r.end(i)])
		c.n++
		if c.sum[c.n] = c.sum[c.n-1] + n; n == maxRun {
			break
		}
		last := r.end(i)
		for joint, i = 0, i+1; i < len(r.classes) && r.start(i)-last < maxGap && separatorSets[r.Chars[r.start(i)]] != 0; i++ {
			joint |= separatorSets[r.Chars[r.start(i)]]
		}
		if class := r.class(i); joint == 0 || r.start(i)-last > maxGap || class != number && (class != date || !dates) {
			break
		}
	}
	return c
}

func (c *cluster) size(i int) int         { return c.sum[i+1] - c.sum[i] }
func (c *cluster) joint(i int) separators { return c.joints[i] }
func (c *cluster) end(n int) int          { return c.r.end(c.groups[n-1]) }

// digits returns those of the groups from and up to, but without, to.
func (c *cluster) digits(from, to int) []byte { return c.all[c.sum[from]:c.sum[to]] }

// between returns the separators between the groups from … to−1.
func (c *cluster) between(from, to int) (seen separators) {
	for i := from + 1; i < to; i++ {
		seen |= c.joint(i)
	}
	return seen
}

// proof is what makes a shape a datum.
type proof uint8

const (
	byShape    proof = iota // the shape alone
	byHyphen                // a hyphen before the last group
	byDigits                // the check digits of its kind
	byPhone                 // a Brazilian number with its area code
	byHyphened              // the same, with a hyphen or parentheses: it has but eight digits after the area code
	byNine                  // a mobile number without area code
	byAmerican              // 415-555-2671
	byStart                 // the digits that a CNS begins with
	byCompany               // a slash, or the check digits of a CNPJ
)

// shape is a way to write a number: how long its groups are and what may stand between them.
type shape struct {
	kind    kind
	proof   proof
	between separators
	lengths []int
}

// shapes are ways to write numbers by the length of the first group, in the order they are tried.
type shapes [maxRun + 1][]shape

type ways struct {
	kind    kind
	proof   proof
	between separators
	lengths string
}

func newShapes(all ...ways) *shapes {
	var table shapes
	for _, w := range all {
		for _, way := range strings.Fields(w.lengths) {
			s := shape{w.kind, w.proof, w.between, nil}
			for _, length := range strings.Split(way, "-") {
				n, _ := strconv.Atoi(length)
				s.lengths = append(s.lengths, n)
			}
			table[s.lengths[0]] = append(table[s.lengths[0]], s)
		}
	}
	return &table
}

// certain are the shapes that check digits prove or that are nobody else's; longer before shorter.
var certain = newShapes(
	ways{cpf, byShape, odd | colon, "3-3-3-2"},
	ways{cpf, byShape, hyphen, "9-2"},
	ways{id, byHyphen, dot | hyphen, "2-3-3-1"}, // RG
	ways{cpf, byDigits, odd, "11 9-2 3-3-5 3-6-2 3-8 6-3-2 6-5 1-1-1-1-1-1-1-1-1-1-1"},
	ways{cns, byDigits, odd, "15 3-4-4-4 3-12 11-4"},
	ways{card, byDigits, spaced, "4-4-4-4-3 4-4-4-4-2 4-4-4-4-1 4-4-4-7 4-4-4-6 4-4-4-5 4-4-4-4 4-4-4-3 4-4-4-2 " +
		"4-4-4-1 4-6-5 4-6-4"},
	ways{card, byDigits, odd, "13 14 15 16 17 18 19"},
)

// likely are the shapes that look like a datum.
var likely = newShapes(
	ways{cns, byStart, spaced, "3-4-4-4"},
	ways{phone, byPhone, dialed, "2-2-1-4-4 2-2-5-4 2-2-9 2-7-4 2-11 2-10 4-5-4 4-9 9-4 2-1-4-4 3-1-4-4 2-5-4 3-5-4 " +
		"7-4 11 12 13"},
	ways{phone, byHyphened, dialed, "2-2-4-4 2-2-8 2-6-4 4-4-4 2-4-4 3-4-4"},
	ways{phone, byPhone, blank | hyphen | paren | plus, "2-9 3-9"},
	ways{phone, byHyphened, blank | hyphen | paren, "2-8"},
	ways{phone, byHyphened, hyphen, "6-4"},
	ways{phone, byAmerican, dialed, "3-3-4"},
	ways{phone, byAmerican, blank | hyphen | dot | paren, "3-7"},
	ways{phone, byNine, hyphen, "5-4"},
)

// companies are the shapes of a CNPJ.
var companies = newShapes(ways{nobodys, byCompany, odd, "2-3-3-4-2 8-4-2"})

// fits reports whether the groups from `from` on are as long and as far apart as those of s. A comma is the decimal
// sign unless a hyphen follows it.
func (c *cluster) fits(s *shape, from int) bool {
	end := from + len(s.lengths)
	for i, n := range s.lengths {
		if c.size(from+i) != n {
			return false
		}
	}
	between := c.between(from, end)
	return between&^s.between == 0 && (between&decimal == 0 || c.joint(end-1)&(hyphen|slash) != 0)
}

// proves reports whether the groups are what s says they look like; opened: they stand behind a '(' or '+'.
func (c *cluster) proves(s *shape, from int, opened bool) bool {
	end := from + len(s.lengths)
	d, between := c.digits(from, end), c.between(from, end)
	switch s.proof {
	case byHyphen:
		return c.joint(end-1) == hyphen
	case byDigits:
		return verified(d) == s.kind
	case byPhone:
		return isBrazilian(d)
	case byHyphened:
		return isBrazilian(d) && (opened || between&(hyphen|paren) != 0)
	case byNine:
		return d[0] == '9'
	case byAmerican:
		return d[0] >= '2' && d[3] >= '2' && (opened || len(s.lengths) == 3 && (between == hyphen || between == dot))
	case byStart:
		return startsCNS(d)
	case byCompany:
		return c.joint(end-2) == slash || isCNPJ(d)
	}
	return true
}

// first returns the first of the shapes that the group `from` begins and that ends before limit: its kind and its end.
func (c *cluster) first(of *shapes, from, limit int, opened bool) (kind, int) {
	set := of[c.size(from)]
	for i := range set {
		if s := &set[i]; from+len(s.lengths) <= limit && c.fits(s, from) && c.proves(s, from, opened) {
			return s.kind, from + len(s.lengths)
		}
	}
	return none, 0
}

// likelyFirst returns the likely shape that begins the cluster. One in which a certain shape begins is none: what is
// left of the certain one would stay.
func (c *cluster) likelyFirst(opened bool) (kind, int) {
	k, n := c.first(likely, 0, c.n, opened)
	if n > 1 {
		if limit := c.untilCertain(); n > limit {
			return c.first(likely, 0, limit, opened)
		}
	}
	return k, n
}

// untilCertain returns how many groups stand before the first certain shape that does not begin the cluster.
func (c *cluster) untilCertain() int {
	for from := 1; c.until == 0; from++ {
		if from == c.n {
			c.until = c.n
		} else if k, _ := c.first(certain, from, c.n, false); k != none {
			c.until = from
		}
	}
	return c.until
}

// international returns how many groups behind a '+' are a telephone number; 0 for none. A country code and
// eight to fifteen digits (E.164); a blank ends it once eleven are there.
func (c *cluster) international() int {
	if string(c.all[:2]) == "55" {
		if k, n := c.likelyFirst(true); k == phone {
			return n
		}
	}
	n, limit := 1, c.untilCertain()
	for n < limit && c.joint(n)&^dialed == 0 && c.sum[n+1] <= 15 {
		before := c.joint(n)
		if c.sum[n] >= 11 && before&blank != 0 || n > 2 && before&paren != 0 {
			break
		}
		n++
	}
	if 8 <= c.sum[n] && c.sum[n] <= 15 {
		return n
	}
	return 0
}

// labelled returns how many groups are the number that a label of kind k stands before. direct: right
// behind it. Blanks join groups only where the first are too short to be the number.
func (c *cluster) labelled(k kind, direct bool) int {
	r, limit := &kinds[k], c.untilCertain()
	if !direct {
		return c.most(limit, r.nearLeast, r.nearMost, dot|hyphen|low)
	}
	if k == cpf || k == taxpayer {
		if n := c.most(limit, 11, 11, odd); n > 0 {
			return n
		}
	}
	joints := dot | hyphen | low
	if k == birth {
		joints |= slash
	}
	n := c.most(limit, r.least, r.most, joints)
	if n > 0 && c.sum[n] >= min(8, r.most) {
		return n
	}
	return max(n, c.most(limit, r.least, r.most, dialed|low))
}

// most returns the largest number of the first groups, up to limit, that are joined by such separators and
// have least to most digits.
func (c *cluster) most(limit, least, most int, joints separators) int {
	best := 0
	for n := 1; n <= limit && c.sum[n] <= most; n++ {
		if n > 1 && c.joint(n-1)&^joints != 0 {
			break
		}
		if c.sum[n] >= least {
			best = n
		}
	}
	return best
}

// isPunctuated reports whether it is 000.000.000-00: nothing but a CPF is written so.
func (c *cluster) isPunctuated() bool { return c.r.isPunctuated(c.r.start(c.groups[0])) }

// amount returns how many groups an amount has: 1.504,00.
func (c *cluster) amount() int {
	n := 1
	for n < c.n && c.joint(n)&^(dot|decimal) == 0 {
		n++
	}
	return n
}

// address returns how many groups the IPv4 address has that begins with the group `from`; 0 for none.
func (c *cluster) address(from int) int {
	end := from + 4
	if c.n < end || c.n > end && c.joint(end) == dot {
		return 0
	}
	for n := from; n < end; n++ {
		d := c.digits(n, n+1)
		if n > from && c.joint(n) != dot ||
			len(d) > 3 || value(d) > 255 || len(d) > 1 && d[0] == '0' {
			return 0
		}
	}
	return end - from
}
