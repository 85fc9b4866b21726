package redact

import "regexp"

// readNumber returns the datum that begins with the number i. An edit without a kind says that the text stays up to its
// end.
func (r *reader) readNumber(i int) edit {
	start := r.start(i)
	c := r.context.ofNumber()
	end := 0
	if r.classes[i] == date {
		end = r.instantEnd(start)
	}
	if end == 0 && c.label == birth && c.direct {
		end = r.writtenDateEnd(start)
	}
	if end > 0 {
		if c.label == birth && c.direct {
			return edit{start, end, birth}
		}
		return edit{end: end}
	}
	n := r.clusterAt(i, c.direct)
	if e := r.dialled(i, n); e.kind != none {
		return e
	}
	isPunctuated := r.isPunctuated(start)
	if c.isKept() && !isPunctuated {
		end = max(r.keptEnd(start), n.end(1))
		for ; r.start(i) < end; i++ {
			if r.classes[i] == number {
				r.tokens[i].kind = nobodys
			}
		}
		return edit{end: end}
	}
	k, groups := r.judge(i, &c, n)
	if groups == 0 && !r.tokens[i].path {
		k, groups = r.labelledBehind(i, n)
	}
	if groups == 0 {
		return edit{end: n.end(1)}
	}
	for j := 1; j < groups && k != none && !isPunctuated; j++ {
		if n.holdsAddress(j) {
			return edit{end: n.end(1)}
		}
	}
	end = n.end(groups)
	if (k == id || k == record) && r.has(end, "-x") && !isAlnum(r.char(end+2)) { // an RG's check digit
		end += len("-x")
	}
	return edit{start, end, k}
}

// judge returns the kind of the datum that the cluster n begins with, and of how many groups it is. Groups of kind none
// stay; 0 groups leave the question open.
func (r *reader) judge(i int, c *context, n *cluster) (kind, int) {
	size := n.size(0)
	switch {
	case r.isPunctuated(r.start(i)):
		return cpf, 4
	case r.isMoney(i):
		return none, n.amount()
	case c.kept == engineKey && 13 <= size && size <= 19, c.kept == company && size == 14:
		return none, 1
	}
	if n.holdsAddress(0) && !(c.isPersons() && n.sum[4] == 11) {
		return none, 4
	}
	if _, groups := n.first(companies, 0, n.n, false); groups > 0 {
		if c.isPersons() {
			return c.label, groups
		}
		return none, groups
	}
	if r.tokens[i].path && !r.has(r.start(i)-len("wa.me/"), "wa.me/") {
		return n.inPath(c)
	}
	return n.personal(c)
}

// personal is judge for what may be a person's. It tries the certain shapes, the label right before, the likely shapes.
// Labels of phone and id, which allow many lengths, and labels further away come last.
func (n *cluster) personal(c *context) (kind, int) {
	if c.kept == offset && c.label == none && n.size(0) == 11 {
		return none, 1
	}
	if k, groups := n.first(certain, 0, n.n, false); k != none {
		return k, groups
	}
	if c.direct && c.label != phone && c.label != id {
		if groups := n.labelled(c.label, true); groups > 0 {
			return c.label, groups
		}
	}
	if string(n.all[:4]) == "0800" || c.kept == counter && c.label == none { // toll-free, a count
		return none, 1
	}
	if k, groups := n.likelyFirst(false); k != none {
		return k, groups
	}
	return c.label, n.labelled(c.label, c.direct)
}

// inPath is judge for a URL's path, where only a number right behind its label is taken: /cpf/123….
func (n *cluster) inPath(c *context) (kind, int) {
	switch {
	case !c.direct:
		return none, 0
	case c.label == id:
		if k := verified(n.digits(0, 1)); k == cpf || k == cns {
			return k, 1
		}
		return none, 0
	}
	return c.label, n.labelled(c.label, true)
}

// dialled returns the telephone number that the cluster n begins with, behind a '+' or the '(' of its area code.
func (r *reader) dialled(i int, n *cluster) edit {
	start := r.start(i) - 1
	isArea := r.char(start) == '('
	isForeign := r.char(start) == '+' || isArea && r.char(start-1) == '+'
	isArea = isArea && n.n > 1 && n.joints[1]&paren != 0 && n.size(0) <= 3
	if r.tokens[i].path || !isArea && !isForeign {
		return edit{}
	}
	k, groups := n.likelyFirst(true)
	if k != phone {
		groups = n.international()
	}
	end := n.end(max(1, groups))
	isTime := lower(r.char(end)) == 't' && r.char(end+3) == ':' // of a wrong date: +12025-01-12T00:00:00Z
	switch {
	case groups == 0, k != phone && !isForeign, isTime:
		return edit{}
	case isForeign && isArea:
		start--
	}
	return edit{start, end, phone}
}

// labelBehind is a number, and its sentence up to the next label.
var labelBehind = regexp.MustCompile("^0[^0-9\n<{\x01\x02;!?&QAZJL]*[L78]")

// labelledBehind returns the kind of a number of 11 or 15 digits that its label follows in the same sentence:
// "12345678900 não é um CPF válido". A label right before the next number belongs to that one.
func (r *reader) labelledBehind(i int, n *cluster) (kind, int) {
	k := map[int]kind{11: cpf, 15: cns}[n.size(0)]
	if k == none {
		return none, 0
	}
	words := labelBehind.Find(r.classes[i:min(len(r.classes), i+2*near)])
	label := i + max(0, len(words)-1)
	next := label + 1
	for next < len(r.classes) && !r.isRead(next) {
		next++
	}
	isNexts := next < len(r.classes) && !r.isWord(next) && r.start(next)-r.end(label) <= 2*maxGap
	if t := r.tokens[label].kind; len(words) == 0 || isNexts || t != k && (t != taxpayer || k != cpf) {
		return none, 0
	}
	return k, 1
}

var code = regular(`[A-Za-z\d]+(?:-[A-Za-z\d]+)+`)

// programCode begins the number of a program's message or of a rule: ORA-06512.
var programCode = regexp.MustCompile(`^(?i:ora|tns|pls|sql|db2|imp|http|https|err|erro|error|cod|codigo|code|` +
	`glosa|tiss|tuss|ans|rn|cvc|soap)-?\d`)

// codeAt returns the number with letters that begins with the token i, behind a person's or card's label: MB-12345-678.
func (r *reader) codeAt(i int) edit {
	start := r.start(i)
	if next := r.char(r.end(i)); r.isWord(i) && next != '-' && looks[next] != isDigit {
		return edit{}
	}
	v := code.Find(r.ahead(start, maxRun))
	if countDigits(v) < leastQuoted || programCode.Match(v) {
		return edit{}
	}
	return edit{start, start + len(v), r.context.label}
}
