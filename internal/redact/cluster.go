package redact

const (
	maxGroups = 12 // one digit each and no more is the longest form of a CPF
	maxRun    = 21 // digits of a group; one longer than any number is of no kind
	maxGap    = 3  // separators between two groups, as in ") - "
	maxRead   = 36 // digits after which no further group is read: a number and what may overlap it
	maxDigits = maxRead + maxRun
)

// separators is a set of them.
type separators uint8

const (
	blank separators = 1 << iota
	dot
	dash
	slash
	comma
	paren
	plus
	low // underscore, asterisk and the like
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

// gapAt is the group that begins behind the separators at s[i:]; its gap is 0 where none does.
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
	'+': plus, '_': low, '*': low, '|': low, '~': low,
}

func separator(r rune) separators { return separatorSets[max(0, min(r, 255))] }

// span is the digits of the groups from and up to, but without, to.
func (c *cluster) span(from, to int) []byte { return c.digits[c.sum[from]:c.sum[to]] }

// count is how many digits the first n groups have.
func (c *cluster) count(n int) int { return c.sum[n] }

// between is the separators between the groups from … to−1.
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
