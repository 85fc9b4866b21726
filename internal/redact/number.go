package redact

import (
	_ "embed"
	"strconv"
	"strings"
)

const (
	maxGroups = 12 // one more than the longest form of a CPF has, a digit each
	maxRun    = 21 // digits of a group that are read
	maxGap    = 3  // separators between two groups, as in ") - "
	maxRead   = 36 // digits after which no further group is read: a number and what may overlap it
)

// separators is a set of the signs between groups of digits.
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
	dialed = blank | dot | hyphen | paren | plus
)

var separatorSets = [256]separators{
	' ': blank, '\n': blank, '.': dot, '-': hyphen, '/': slash, ',': decimal, '(': paren, ')': paren, '+': plus,
	':': colon, '_': low, '*': low, '|': low, '~': low,
}

// cluster is groups of digits with separators between them, as many as one number may have.
type cluster struct {
	r      *reader
	groups [maxGroups]int        // the token of each group
	joints [maxGroups]separators // the separators before each group
	n      int                   // how many groups there are
	sum    [maxGroups + 1]int    // how many digits stand before each group
	all    [maxRead + 24]byte    // the digits
	form   form                  // the one that first judges
	until  int                   // groups before the first certain shape that does not begin it; 0 for not yet known
}

// clusterAt returns the cluster that begins with the token i. A date ends it unless dates is true.
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
		for joint, i = 0, i+1; i < len(r.classes) && r.start(i)-last < maxGap; i++ {
			separator := separatorSets[r.Chars[r.start(i)]]
			if separator == 0 {
				break
			}
			joint |= separator
		}
		if class := r.class(i); joint == 0 || r.start(i)-last > maxGap || class != number && (class != date || !dates) {
			break
		}
	}
	return c
}

func (c *cluster) size(i int) int { return c.sum[i+1] - c.sum[i] }
func (c *cluster) end(n int) int  { return c.r.end(c.groups[n-1]) }

// digits returns the digits of the groups [from, to).
func (c *cluster) digits(from, to int) []byte { return c.all[c.sum[from]:c.sum[to]] }

// shape is a way to write a number: a line of numbers.txt, which explains its parts, with one of its lengths.
type shape struct {
	kind    kind
	proof   func(f *form) bool // may be nil
	between separators
	lengths []int // of its groups
}

// form is groups of digits that have the lengths of a shape, and the separators between them.
type form struct {
	digits   []byte
	between  separators // all the separators
	last     separators // before the last group
	before   separators // before the last but one
	groups   int
	isOpened bool // they stand behind a '(' or '+'
}

// proofs are the conditions that numbers.txt names.
var proofs = map[string]func(f *form) bool{
	"hyphen": func(f *form) bool { return f.last == hyphen },
	"phone":  func(f *form) bool { return brazilian.Match(f.digits) },
	// eight digits behind the area code prove too little
	"hyphened": func(f *form) bool {
		return brazilian.Match(f.digits) && (f.isOpened || f.between&(hyphen|paren) != 0)
	},
	"mobile": func(f *form) bool { return f.digits[0] == '9' }, // without an area code
	"american": func(f *form) bool { // 415-555-2671
		return f.digits[0] >= '2' && f.digits[3] >= '2' &&
			(f.isOpened || f.groups == 3 && (f.between == hyphen || f.between == dot))
	},
	"cns":     func(f *form) bool { return startsCNS(f.digits) },
	"company": func(f *form) bool { return f.before == slash || isCNPJ(f.digits) },
}

//go:embed numbers.txt
var shapeLines string

// shapes holds shapes by the length of their first group, in the order in which they are tried.
type shapes [maxRun + 1][]shape

// shapesOf reads the lines of numbers.txt that begin with word.
func shapesOf(word string) *shapes {
	var table shapes
	for line := range strings.Lines(shapeLines) {
		part := strings.Split(strings.TrimSpace(line), "\t")
		if part[0] != word {
			continue
		}
		s := shape{kind: kindNamed(part[1]), proof: proofs[part[2]]}
		if part[2] == "digits" {
			s.proof = func(f *form) bool { return verified(f.digits) == s.kind }
		}
		for _, c := range []byte(part[3]) {
			s.between |= separatorSets[c]
		}
		for _, way := range strings.Fields(part[4]) {
			s.lengths = nil
			for _, length := range strings.Split(way, "-") {
				n, _ := strconv.Atoi(length)
				s.lengths = append(s.lengths, n)
			}
			table[s.lengths[0]] = append(table[s.lengths[0]], s)
		}
	}
	return &table
}

var certain, likely, companies = shapesOf("certain"), shapesOf("likely"), shapesOf("company")

// first returns the kind and the end of the first shape that begins with the group `from` and ends at limit or before.
// A comma is a decimal sign, which no shape has, unless a hyphen or slash stands before the last group.
func (c *cluster) first(of *shapes, from, limit int, opened bool) (kind, int) {
shapes:
	for i := range of[c.size(from)] {
		s := &of[c.size(from)][i]
		end, between := from+len(s.lengths), separators(0)
		if end > limit {
			continue
		}
		for j, n := range s.lengths {
			if c.size(from+j) != n {
				continue shapes
			}
			if j > 0 {
				between |= c.joints[from+j]
			}
		}
		if between&^s.between != 0 || between&decimal != 0 && c.joints[end-1]&(hyphen|slash) == 0 {
			continue
		}
		c.form = form{c.digits(from, end), between, c.joints[end-1], c.joints[max(0, end-2)], len(s.lengths), opened}
		if s.proof == nil || s.proof(&c.form) {
			return s.kind, end
		}
	}
	return none, 0
}

// likelyFirst returns the kind and the end of the likely shape that begins the cluster. It ends before any certain
// shape begins, or the rest of the certain one would stay.
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

// international returns how many groups behind a '+' are a telephone number; 0 for none. It has eight to fifteen digits
// with its country code (E.164); a blank ends it once there are eleven.
func (c *cluster) international() int {
	n, limit := 1, c.untilCertain()
	for n < limit && c.joints[n]&^dialed == 0 && c.sum[n+1] <= 15 {
		before := c.joints[n]
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

// labelled returns how many groups are the number that a label of kind k announces, right before it if direct. Blanks
// join groups only where those before the blank are too short to be the number.
func (c *cluster) labelled(k kind, direct bool) int {
	r, limit := &kinds[k], c.untilCertain()
	if !direct {
		joints := dot | hyphen | low
		if k == card { // sem carteirinha, usar a da mãe 0 123 000456 78901 2
			joints |= blank
		}
		return c.most(limit, r.nearLeast, r.nearMost, joints)
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

// most returns the largest number of first groups, up to limit, that only joints separate and that have least to most
// digits.
func (c *cluster) most(limit, least, most int, joints separators) int {
	best := 0
	for n := 1; n <= limit && c.sum[n] <= most; n++ {
		if n > 1 && c.joints[n-1]&^joints != 0 {
			break
		}
		if c.sum[n] >= least {
			best = n
		}
	}
	return best
}

// amount returns how many groups an amount has: 1.504,00.
func (c *cluster) amount() int {
	n := 1
	for n < c.n && c.joints[n]&^(dot|decimal) == 0 {
		n++
	}
	return n
}

// holdsAddress reports whether an IPv4 address begins with the group i.
func (c *cluster) holdsAddress(i int) bool {
	if c.n < i+4 || c.n > i+4 && c.joints[i+4] == dot || c.joints[i+1] != dot {
		return false
	}
	start := c.r.start(c.groups[i])
	return len(ip.Find(c.r.Chars[start:c.end(i+4)])) == c.end(i+4)-start
}
