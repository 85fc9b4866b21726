package redact

import (
	"bytes"
	"strconv"
	"strings"
)

const (
	maxGroups = 12 // one more than the longest form of a CPF has, a digit each
	maxRun    = 21 // digits of a group that are read
	maxGap    = 3  // separators between two groups, as in ") - "
	maxRead   = 36 // digits after which no further group is read: a number and what may overlap it

	// Separators between groups: of any number, of one that is dialled, of a CPF.
	joining, dialling, odd = ".-_*|~", " \n.-()+", " \n.-/,+_*|~"
)

var isSeparator = setOf(dialling + odd + ":")

// cluster is groups of digits with separators between them, as many as one number may have.
type cluster struct {
	r     *reader
	start int
	v     []byte // the characters of the groups
	first int    // digits of the first group
	until int    // characters before the first certain shape that does not begin v; 0 for not yet known
}

// clusterAt returns the cluster that begins with the token i. A date ends it unless dates is true.
func (r *reader) clusterAt(i int, dates bool) cluster {
	c := cluster{r: r, start: r.start(i), first: r.size(i)}
	end, digits := r.end(i), 0
	for groups := 1; groups < maxGroups; groups++ {
		if digits += r.size(i); digits >= maxRead || r.size(i) >= maxRun {
			break
		}
		for i++; isSeparator[r.char(r.start(i))] && r.start(i) < end+maxGap; i++ {
		}
		gap, class := r.start(i)-end, r.class(i)
		if gap == 0 || gap > maxGap || class != number && (class != date || !dates) {
			break
		}
		end = r.end(i)
	}
	c.v = r.Chars[c.start:end]
	return c
}

// run returns how many digits v begins with.
func run(v []byte) (n int) {
	for n < len(v) && looks[v[n]] == isDigit {
		n++
	}
	return n
}

// digitsOf returns the digits of v, in memory that the next call uses again.
func (r *reader) digitsOf(v []byte) []byte {
	r.decoded = r.decoded[:0]
	for _, c := range v {
		if looks[c] == isDigit {
			r.decoded = append(r.decoded, c)
		}
	}
	return r.decoded
}

// shape is a way to write a number: a line of numbers.txt, which explains its parts, with one of its lengths.
type shape struct {
	kind    kind
	proof   func(v, digits []byte, isOpened bool) bool // isOpened: v stands behind a '(' or '+'; may be nil
	between *set
	lengths []int // of its groups
}

// proofs are the conditions that numbers.txt names.
var proofs = map[string]func(v, digits []byte, isOpened bool) bool{
	"hyphen": func(v, _ []byte, _ bool) bool { return v[len(v)-2] == '-' },
	"phone":  func(_, digits []byte, _ bool) bool { return brazilian.Match(digits) },
	// eight digits behind the area code prove too little
	"hyphened": func(v, digits []byte, isOpened bool) bool {
		return brazilian.Match(digits) && (isOpened || bytes.ContainsAny(v, "-()"))
	},
	"mobile": func(_, digits []byte, _ bool) bool { return digits[0] == '9' }, // without an area code
	"american": func(v, digits []byte, isOpened bool) bool { // 415-555-2671
		return digits[0] >= '2' && digits[3] >= '2' && (isOpened || american.Match(v))
	},
	"cns":     func(_, digits []byte, _ bool) bool { return startsCNS(digits) },
	"company": func(v, digits []byte, _ bool) bool { return branch.Match(v) || isCNPJ(digits) },
}

var (
	american, branch, decimal = pattern("american"), pattern("branch"), pattern("decimal")
	longForeign, area, amount = pattern("longForeign"), pattern("area"), pattern("amount")
	labelBehind, nextNumbers  = pattern("labelBehind"), pattern("nextNumbers")
	code, programCode         = pattern("code"), pattern("programCode")
)

// shapes holds shapes by the length of their first group, in the order in which they are tried.
type shapes [maxRun + 1][]shape

// shapesOf reads the lines of numbers.txt that begin with word.
func shapesOf(word string) *shapes {
	var table shapes
	signs := strings.NewReplacer(" ", " \n", "(", "()", "_", "_*|~")
	for part := range lines("numbers.txt", 5) {
		if part[0] != word {
			continue
		}
		s := shape{kindNamed(part[1]), proofs[part[2]], setOf(signs.Replace(part[3])), nil}
		if part[2] == "digits" {
			s.proof = func(_, digits []byte, _ bool) bool { return verified(digits) == s.kind }
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

// end returns where the groups of the shape that begin v end; 0 if v does not begin with it.
func (s *shape) end(v []byte) (end int) {
	for i, n := range s.lengths {
		before := end
		for i > 0 && end < len(v) && s.between[v[end]] {
			end++
		}
		if i > 0 && end == before || run(v[end:]) != n {
			return 0
		}
		end += n
	}
	return end
}

// shaped returns the kind and the end of the first shape that begins v.
func (r *reader) shaped(of *shapes, v []byte, isOpened bool) (kind, int) {
	first := run(v)
	if first >= len(of) {
		return none, 0
	}
	for i := range of[first] {
		s := &of[first][i]
		end := s.end(v)
		if end > 0 && (s.proof == nil || s.proof(v[:end], r.digitsOf(v[:end]), isOpened)) &&
			(end == first || !decimal.Match(v[:end])) {
			return s.kind, end
		}
	}
	return none, 0
}

// likely returns the kind and the end of the likely shape that begins the cluster. It ends before any certain shape
// begins, or the rest of the certain one would stay.
func (c *cluster) likely(isOpened bool) (kind, int) {
	k, end := c.r.shaped(likely, c.v, isOpened)
	if end > c.first && end > c.limit() {
		return c.r.shaped(likely, c.v[:c.limit()], isOpened)
	}
	return k, end
}

// limit returns how many characters stand before the first certain shape that does not begin the cluster.
func (c *cluster) limit() int {
	for i := c.first; c.until == 0; i++ {
		if i == len(c.v) {
			c.until = i
		} else if looks[c.v[i]] == isDigit && looks[c.v[i-1]] != isDigit {
			if k, _ := c.r.shaped(certain, c.v[i:], false); k != none {
				c.until = len(bytes.TrimRight(c.v[:i], odd+dialling+":"))
			}
		}
	}
	return c.until
}

// most returns where the first groups of v end that only signs of joints separate and that have least to most digits;
// 0 if there are none.
func most(v []byte, least, most int, joints string) (end int) {
	for i, n := 0, 0; i < len(v); {
		size := run(v[i:])
		if n += min(size, maxRun); n > most || size == 0 && !is(v[i], joints) {
			break
		}
		i += max(size, 1)
		if size > 0 && n >= least {
			end = i
		}
	}
	return end
}

// readNumber returns the datum that begins with the number i. An edit without a kind says that the text stays up to its
// end.
func (r *reader) readNumber(i int) edit {
	start, c := r.start(i), r.context
	if r.classes[i] == date {
		return edit{end: r.instantEnd(start)}
	}
	n := r.clusterAt(i, c.direct)
	if e := r.dialled(i, &n); e.kind != none {
		return e
	}
	isPunctuated := r.isPunctuated(start)
	if c.isKept() && !isPunctuated {
		end := max(r.keptEnd(start, documentRest), r.end(i))
		for ; r.start(i) < end; i++ {
			if r.classes[i] == number {
				r.tokens[i].kind = nobodys
			}
		}
		return edit{end: end}
	}
	k, end := n.judge(i, &c)
	if end == 0 && !r.tokens[i].path {
		k, end = r.labelledBehind(i), n.first
	}
	for at := n.first; at < end && k != none && !isPunctuated; at++ {
		if looks[n.v[at-1]] != isDigit && n.addressEnd(at) > 0 {
			k, end = none, n.first
		}
	}
	if end += start; k == none {
		return edit{end: max(end, r.end(i))}
	}
	if (k == id || k == record) && r.has(end, "-x") && !isAlnum(r.char(end+2)) { // an RG's check digit
		end += len("-x")
	}
	return edit{start, end, k}
}

// judge returns the kind of the datum that begins the cluster, at the token i, and where it ends. What is of kind none
// stays; an end of 0 leaves the question open. The certain shapes come first, the label right before, the likely
// shapes. Labels of phone and id, which allow many lengths, and labels further away come last.
func (n *cluster) judge(i int, c *context) (kind, int) {
	r := n.r
	isPersons, isPath := c.isPersons(), r.tokens[i].path && !r.has(n.start-len("wa.me/"), "wa.me/")
	ip := n.addressEnd(0)
	_, ofCompany := r.shaped(companies, n.v, false)
	switch {
	case r.isPunctuated(n.start):
		return cpf, len("000.000.000-00")
	case r.isMoney(i):
		return none, len(amount.Find(n.v))
	case c.kept == engineKey && 13 <= n.first && n.first <= 19, c.kept == company && n.first == 14:
		return none, n.first
	case ip > 0 && !(isPersons && len(r.digitsOf(n.v[:ip])) == 11):
		return none, ip
	case ofCompany > 0 && isPersons:
		return c.label, ofCompany
	case ofCompany > 0:
		return none, ofCompany
	case isPath && !c.direct:
		return none, 0
	case isPath && c.label == id:
		return verified(n.v[:n.first]), n.first
	case isPath: // only a number right behind its label is taken: /cpf/123….
		return c.label, n.labelled(c.label, true)
	case c.kept == offset && c.label == none && n.first == 11:
		return none, n.first
	}
	if k, end := r.shaped(certain, n.v, false); k != none {
		return k, end
	}
	if c.direct && c.label != phone && c.label != id {
		if end := n.labelled(c.label, true); end > 0 {
			return c.label, end
		}
	}
	if bytes.HasPrefix(n.v, []byte("0800")) || c.kept == counter && c.label == none { // toll-free, a count
		return none, n.first
	}
	if k, end := n.likely(false); k != none {
		return k, end
	}
	return c.label, n.labelled(c.label, c.direct)
}

// labelled returns where the number ends that a label of kind k announces, right before it if direct. Blanks join
// groups only where those before the blank are too short to be the number.
func (n *cluster) labelled(k kind, direct bool) int {
	info, v, joints := &kinds[k], n.v[:n.limit()], joining
	if !direct {
		if k == card { // sem carteirinha, usar a da mãe 0 123 000456 78901 2
			joints += " \n"
		}
		return most(v, info.nearLeast, info.nearMost, joints)
	}
	if k == cpf || k == taxpayer {
		if end := most(v, 11, 11, odd); end > 0 {
			return end
		}
	}
	if k == birth {
		joints += "/"
	}
	end := most(v, info.least, info.most, joints)
	if end > 0 && len(n.r.digitsOf(v[:end])) >= min(8, info.most) {
		return end
	}
	return max(end, most(v, info.least, info.most, dialling+joining))
}

// addressEnd returns the end of the IPv4 address at v[i:]; 0 for none.
func (n *cluster) addressEnd(i int) int {
	if m := ip.FindSubmatchIndex(n.v[i:]); m != nil {
		return i + m[3]
	}
	return 0
}

// dialled returns the telephone number that the cluster n begins with, behind a '+' or the '(' of its area code.
func (r *reader) dialled(i int, n *cluster) edit {
	start := n.start - 1
	isArea := r.char(start) == '('
	isForeign := r.char(start) == '+' || isArea && r.char(start-1) == '+'
	if isArea = isArea && area.Match(n.v); r.tokens[i].path || !isArea && !isForeign {
		return edit{}
	}
	k, end := n.likely(true)
	if k != phone { // eight to fifteen digits with its country code (E.164)
		v := n.v[:n.limit()]
		if long := longForeign.Find(v); long != nil {
			v = long
		}
		end = most(v, 8, 15, dialling)
	}
	isNone := end == 0 || k != phone && !isForeign
	end += n.start
	if isNone || lower(r.char(end)) == 't' && r.char(end+3) == ':' { // of a wrong date: +12025-01-12T00:00:00Z
		return edit{}
	}
	if isForeign && isArea {
		start--
	}
	return edit{start, end, phone}
}

// labelledBehind returns the kind of a number of 11 or 15 digits that its label follows in the same sentence:
// "12345678900 não é um CPF válido". A label right before the next number belongs to that one.
func (r *reader) labelledBehind(i int) kind {
	size := r.size(i)
	if size != 11 && size != 15 {
		return none
	}
	label := i + r.match(labelBehind, i) - 1
	if label > i && r.match(nextNumbers, label) == 0 {
		switch k := r.tokens[label].kind; {
		case size == 11 && (k == cpf || k == taxpayer):
			return cpf
		case size == 15 && k == cns:
			return cns
		}
	}
	return none
}

// codeAt returns the number with letters that begins with the token i, behind a person's or card's label: MB-12345-678.
func (r *reader) codeAt(i int) edit {
	start, k := r.start(i), r.context.label
	if r.classes[i] == date || !r.context.direct || k != id && k != card && k != record {
		return edit{}
	}
	v := code.Find(r.ahead(start, maxRun))
	if len(r.digitsOf(v)) < leastQuoted || !bytes.ContainsFunc(v, isAnyLetter) || programCode.Match(v) {
		return edit{}
	}
	return edit{start, start + len(v), k}
}
