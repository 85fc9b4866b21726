package redact

import "strings"

// edit is a datum: in[start:end] becomes its kind's mark.
type edit struct {
	start, end int
	kind       kind
}

// edits of a text, in its order. The first few need no memory of their own.
type edits struct {
	n     int
	first [4]edit
	more  []edit
	saved int // bytes they save
}

func (l *edits) add(e edit) {
	if l.n < len(l.first) {
		l.first[l.n] = e
	} else {
		l.more = append(l.more, e)
	}
	l.n++
	l.saved += e.saves()
}

func (e *edit) saves() int { return e.end - e.start - len(marks[e.kind]) }

func (l *edits) at(i int) *edit {
	if i < len(l.first) {
		return &l.first[i]
	}
	return &l.more[i-len(l.first)]
}

// undo takes back the edits from start on.
func (l *edits) undo(start int) {
	for l.n > 0 && l.at(l.n-1).start >= start {
		l.n--
		l.saved -= l.at(l.n).saves()
	}
	l.more = l.more[:max(0, l.n-len(l.first))]
}

// end is where the last edit ends; 0 where there is none.
func (l *edits) end() int {
	if l.n == 0 {
		return 0
	}
	return l.at(l.n - 1).end
}

// apply is s with the edits made; s itself where there are none.
func (l *edits) apply(s string) string {
	if l.n == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) - l.saved)
	from := 0
	for i := range l.n {
		e := l.at(i)
		b.WriteString(s[from:e.start])
		b.WriteString(marks[e.kind])
		from = e.end
	}
	b.WriteString(s[from:])
	return b.String()
}
