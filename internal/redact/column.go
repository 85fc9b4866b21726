package redact

import (
	"bytes"
	"slices"
)

// The header of a table, the columns of an INSERT and the fields of a key label the values below or behind them by
// their place in the list.

const (
	maxHeader  = 1 << 12 // characters of a header before and behind a label
	maxBetween = 24      // characters between two lists, their brackets included: ") VALUES ("
	columnar   = byte(0) // the separator that is a tab or several blanks
)

// readColumns finds the data that the names of columns label.
func (r *reader) readColumns() {
	read := 0
	for i, c := range r.classes {
		if start := r.start(i); isHeading[c] && start >= read {
			read = max(read, r.columnsAt(start, max(read, start-maxHeader)))
		}
	}
}

// columnsAt reads the list around the label at `at`, if it is one of columns, and the lists of values behind it. It
// looks back no further than from, and returns where the last list ends.
func (r *reader) columnsAt(at, from int) int {
	i, end := at, at
	for end-i < maxHeader && isOfHeader(r.char(end)) {
		end++
	}
	for i > from && isOfHeader(r.Chars[i-1]) {
		i--
	}
	closer, separator := byte('\n'), columnar
	if open := bytes.LastIndexByte(r.Chars[i:at], '"'); open >= 0 {
		closing := bytes.IndexByte(r.Chars[at:end], '"')
		if closing >= 0 && leadsToRow.Match(r.ahead(at+closing, maxBetween)) {
			i, end, closer = i+open+1, at+closing, '"'
		}
	}
	switch c := r.char(end); {
	case c == ')' && r.char(i-1) == '(':
		closer, separator = c, ','
	case c != closer:
		return end
	default:
		header := r.Chars[i:end]
		for _, s := range []byte(",;|") {
			if bytes.IndexByte(header, s) >= 0 && (s != ',' || !bytes.Contains(header, []byte(", "))) {
				separator = s
			}
		}
	}
	columns, _ := r.cells(i, separator, closer)
	isHeader := false
	for j := range columns {
		c := &columns[j]
		if closer == ')' || !r.isText(c) {
			c.kind = r.fieldKind(c.start, c.end)
		}
		isHeader = isHeader || c.kind != none
	}
	if !isHeader {
		return end
	}
	for isFirst := true; ; isFirst = false {
		m := leadsToRow.FindSubmatchIndex(r.ahead(end, maxBetween))
		if m == nil || r.char(end) != closer || len(columns) == 1 && m[3] <= m[2] {
			return end
		}
		values, after := r.cells(end+m[1], separator, closer)
		middle := r.char(values[len(values)/2].start)
		isRule := closer == '\n' && (middle > ' ' && looks[middle] == isSign || middle == '\n' && !isFirst) // |---|---|
		isCut := closer == ')' && r.char(after) != closer && len(values) < len(columns)
		if len(values) != len(columns) && !isRule && !isCut {
			return end
		}
		for j := 0; isFirst && j < len(columns); j++ {
			r.readCell(columns[j], none)
		}
		for j := range min(len(values), len(columns)) {
			r.readCell(values[j], columns[j].kind)
		}
		end = after
	}
}

// isText reports whether the cell c holds a word that no column's name has: paciente desconhecida.
func (r *reader) isText(c *edit) bool {
	for w, at := range r.words(c.start, c.end) {
		if w.class == unknown && at.end-at.start > maxShort {
			return true
		}
	}
	return false
}

func isOfHeader(c byte) bool { return isAlnum(c) || is(c, " _.,;|\"`") }

// leadsToRow stands between a header and a row, or between two rows: "guia;nome" => "1;Ana", (nome) VALUES (. A list of
// one column counts only with an equals sign, as in a key: (nome)=(Ana).
var leadsToRow = regular(`\n|\)[A-Za-z \n,]{0,20}(=? ?)\(|" ?(?:[=-]>|:) ?"`)

// cells returns the cells of the list at i, their kinds unset, and where the list ends. A value may be quoted.
func (r *reader) cells(i int, separator, closer byte) ([]edit, int) {
	var all []edit
	if separator == columnar {
		i = r.pastBlanks(i)
	}
	start, quote, depth := i, byte(0), 0
	for ; ; i++ {
		c := r.char(i)
		isOver := c == 0 || c == '\n' || c == closer && quote == 0 && depth == 0
		switch {
		case !isOver && quote == 0 && c == ')' && depth > 0:
			depth--
		case !isOver && quote == 0 && (c == '(' && closer == ')' || depth > 0):
			if c == '(' { // TO_DATE('1966-05-05','YYYY-MM-DD')
				depth++
			}
		case isOver, quote == 0 && (c == separator && c != columnar || separator == columnar && r.isWide(i)):
			all = append(all, r.trimmed(start, i))
			if isOver {
				return all, i
			}
			if separator == columnar {
				i = r.pastBlanks(i) - 1
			}
			start = i + 1
		case c == quote:
			quote = 0
		case quote == 0 && is(c, `"'`) && r.pastBlanks(start) == i:
			quote = c
		}
	}
}

// isWide reports whether the blank at i separates columns.
func (r *reader) isWide(i int) bool {
	return r.char(i) == ' ' && (r.char(i+1) == ' ' || is(r.in[r.From[i]], "\t\\"))
}

// trimmed returns the cell from start to end without a label that a colon ends, and without the quotation marks and
// blanks around its value.
func (r *reader) trimmed(start, end int) edit {
	const around = " \"'`"
	start += bytes.LastIndex(r.Chars[start:end], []byte(": ")) + 1
	v := bytes.TrimSuffix(r.Chars[start:end], []byte("...")) // where a row was cut
	if m := typed.FindSubmatchIndex(v); m != nil {
		return edit{start: start + m[2], end: start + m[3]}
	}
	start += len(v) - len(bytes.TrimLeft(v, around))
	return edit{start: start, end: start + len(bytes.Trim(v, around))}
}

// typed is a value with its type or within a function: N'Ana', DATE '1947-08-12', TO_DATE('12/08/1947','DD/MM/YYYY').
var typed = regular(` *(?:[NE]|(?i:date|timestamp) |\w+\( ?)'([^'\n]*)'`)

// readCell takes the value v if it suits its column's kind k. The sign before v becomes an endTag, so that no label
// before it reaches v or what follows.
func (r *reader) readCell(v edit, k kind) {
	taken := r.suited(v.start, v.end, k)
	if taken != none {
		r.redact(edit{v.start, v.end, taken})
	}
	i := r.tokenAtOrBehind(v.start)
	if i > 0 && !r.isWord(i-1) && !is(r.class(i-1), numberish+marks) {
		r.classes[i-1] = endTag
	}
	for ; i < len(r.classes) && r.start(i) < v.end; i++ {
		if taken != none || k == nobodys && !r.isPunctuated(r.start(i)) {
			r.classes[i] = fixed
		}
	}
}

// tokenAtOrBehind returns the first token that begins at the character i or behind it.
func (r *reader) tokenAtOrBehind(i int) int {
	n, _ := slices.BinarySearchFunc(r.tokens, i, func(t token, at int) int { return int(t.at) - at })
	return n
}
