package redact

import (
	"bytes"
	"slices"
)

// This file reads lists of values. The header of a table, the columns of an INSERT and the fields of a key label the
// values below or behind them by their place in the list. A row without a header, and a list of arguments, tell by what
// is beside it whose a value is: "1;[CPF];Ana Reis;10/03/1955;2".

const (
	maxHeader  = 1 << 12                // characters of a header before and behind a label
	maxBetween = 24                     // characters between two lists, their brackets included: ") VALUES ("
	columnar   = byte(0)                // the separator that is a tab or several blanks
	personal   = "\x01\x02\x03\x06\x08" // kinds of marks that tell of a person: CPF, CNS, card, name, id
	leastCells = 3                      // of a row
	nearby     = 2                      // cells between a person's mark and what is the person's, at most
)

var (
	leadsToRow, markedCell = pattern("leadsToRow"), pattern("markedCell")
	typed, listedName      = pattern("typed"), pattern("listedName")
	grouped, born          = pattern("grouped"), pattern("born")
	personRow              = pattern("personRow")
)

// readLists finds the data that the names of columns label, and those beside a person's mark or a name in a row.
func (r *reader) readLists() {
	columns, rows := 0, 0 // where the lists that were read end
	for i, c := range r.classes {
		start := r.start(i)
		if isHeading[c] && start >= columns {
			columns = max(columns, r.columnsAt(start, max(columns, start-maxHeader)))
		}
		isPersons := is(c, marks) && is(byte(r.tokens[i].kind), personal)
		if start >= rows && (isPersons || is(c, leading) && is(r.class(i-1), ";|,\"'")) {
			rows = r.rowAt(start, rows)
		}
	}
}

// columnsAt reads the list around the label at `at`, if it is one of columns, and the lists of values behind it. It
// looks back no further than from, and returns where the last list ends.
func (r *reader) columnsAt(at, from int) int {
	start, end := at, at
	for end-at < maxHeader && isOfHeader(r.char(end)) {
		end++
	}
	for start > from && isOfHeader(r.Chars[start-1]) {
		start--
	}
	closer, separator := byte('\n'), columnar
	open, closing := bytes.LastIndexByte(r.Chars[start:at], '"'), bytes.IndexByte(r.Chars[at:end], '"')
	if open >= 0 && closing >= 0 && leadsToRow.Match(r.ahead(at+closing, maxBetween)) {
		start, end, closer = start+open+1, at+closing, '"'
	}
	header := r.Chars[start:end]
	for _, s := range []byte(",;|") {
		if bytes.IndexByte(header, s) >= 0 && (s != ',' || !bytes.Contains(header, []byte(", "))) {
			separator = s
		}
	}
	if r.char(start-1) == '(' {
		closer, separator = ')', ','
	}
	if r.char(end) != closer {
		return end
	}
	columns, _ := r.cells(start, separator, closer)
	isHeader := r.areColumns(columns, closer != ')')
	for isFirst := true; isHeader; isFirst = false {
		m := leadsToRow.FindSubmatchIndex(r.ahead(end, maxBetween))
		if m == nil || r.char(end) != closer || len(columns) == 1 && m[3] <= m[2] {
			break
		}
		values, after := r.cells(end+m[1], separator, closer)
		middle := r.char(values[len(values)/2].start)
		isRule := closer == '\n' && (middle > ' ' && looks[middle] == isSign || middle == '\n' && !isFirst) // |---|---|
		isCut := closer == ')' && r.char(after) != closer && len(values) < len(columns)
		if len(values) != len(columns) && !isRule && !isCut {
			break
		}
		if isFirst {
			r.readCells(make([]edit, len(columns)), columns)
		}
		r.readCells(columns, values)
		end = after
	}
	return end
}

// readMarkup reads the tables of HTML. A table's first row may name its columns.
func (r *reader) readMarkup() {
	var columns, row []edit
	for i, c := range r.Chars {
		if c != '<' || lower(r.char(i+1)) != 't' && r.char(i+1) != '/' {
			continue
		}
		switch m := markedCell.FindSubmatchIndex(r.ahead(i, maxHeader)); {
		case m != nil:
			row = append(row, r.trimmed(i+m[2], i+m[3]))
		case r.has(i, "</table"):
			columns = nil
		case r.has(i, "</tr"):
			if columns == nil && r.areColumns(row, false) {
				columns, row = row, nil
			} else if len(columns) == len(row) {
				r.readCells(columns, row)
			}
			if len(row) >= leastCells && len(r.edits) == 0 {
				r.readRow(row)
			}
			row = nil
		}
	}
}

// areColumns reports whether one of the cells names a column, and sets their kinds; a cell of plain text may name none.
func (r *reader) areColumns(row []edit, isPlain bool) (found bool) {
	for j := range row {
		if c := &row[j]; !isPlain || !r.isText(c) {
			c.kind = r.fieldKind(c.start, c.end)
		}
		found = found || row[j].kind != none
	}
	return found
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

// cells returns the cells of the list at i, their kinds unset, and where the list ends. A value may be quoted.
func (r *reader) cells(i int, separator, closer byte) ([]edit, int) {
	var all []edit
	if separator == columnar {
		i = r.run(i, isBlank)
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
				i = r.run(i, isBlank) - 1
			}
			start = i + 1
		case c == quote:
			quote = 0
		case quote == 0 && is(c, `"'`) && r.run(start, isBlank) == i:
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

// readCells takes what suits its column from a row, which may be shorter. The sign before a value becomes an endTag, so
// that no label before it reaches the value or what follows.
func (r *reader) readCells(columns, row []edit) {
	for j, v := range row[:min(len(columns), len(row))] {
		taken := r.suited(v.start, v.end, columns[j].kind)
		if taken != none {
			r.redact(edit{v.start, v.end, taken})
		}
		i := r.tokenAtOrBehind(v.start)
		if i > 0 && !r.isWord(i-1) && !is(r.class(i-1), numberish+marks) {
			r.classes[i-1] = endTag
		}
		for ; i < len(r.classes) && r.start(i) < v.end; i++ {
			if taken != none || columns[j].kind == nobodys && !r.isPunctuated(r.start(i)) {
				r.classes[i] = fixed
			}
		}
	}
}

// tokenAtOrBehind returns the first token that begins at the character i or behind it.
func (r *reader) tokenAtOrBehind(i int) int {
	n, _ := slices.BinarySearchFunc(r.tokens, i, func(t token, at int) int { return int(t.at) - at })
	return n
}

// around returns the sign before the blanks and quotation marks at i, going by step.
func (r *reader) around(i, step int) byte {
	for is(r.char(i), " \"'`") {
		i += step
	}
	return r.char(i)
}

// rowAt reads the row around `at`, which begins at from or later, and returns where it ends.
func (r *reader) rowAt(at, from int) int {
	start, separator, closer := at, r.around(at-1, -1), byte('\n')
	if !is(separator, ";|,") {
		separator = r.around(at+1, 1) // of a mark
	}
	switch {
	case is(separator, ";|,"):
	case r.isWide(at - 1), r.isWide(at + 1):
		separator = columnar
	default:
		return from
	}
	for start > from && r.Chars[start-1] != '\n' && !(separator == ',' && is(r.Chars[start-1], "([")) {
		start--
	}
	switch r.char(start - 1) {
	case '(':
		closer = ')'
	case '[':
		closer = ']'
	}
	row, end := r.cells(start, separator, closer)
	isSentence := closer == '\n' && separator == ',' && bytes.Contains(r.Chars[start:end], []byte(", "))
	if len(row) >= leastCells && !isSentence {
		r.readRow(row)
	}
	return end
}

// readRow takes what is a person's from a row, if its cells are a person's.
func (r *reader) readRow(row []edit) {
	cells := bytes.Repeat([]byte("-"), len(row)) // a letter each, as in patterns.txt
	for j := range row {
		v := &row[j]
		if v.end-v.start == 1 && isMark(r.Chars[v.start]) {
			cells[j] = "-MMM--NBM-------"[r.Chars[v.start]&0xf]
		} else if i := r.tokenAtOrBehind(v.start); r.class(i) != fixed && (j == 0 || !is(r.around(v.start-1, -1), ":=")) {
			v.kind = r.cellKind(*v) // no column's or label's
			cells[j] = "-csk--nb"[v.kind]
			if v.kind == name && r.nameWords(v.start, v.end).isGiven {
				cells[j] = 'g'
			}
		}
	}
	isNamed, isBorn := bytes.IndexByte(cells, 'N') >= 0, bytes.IndexByte(cells, 'B') >= 0
	isPersons, person := personRow.Match(cells), -len(row)
	for j, c := range cells {
		switch {
		case !isPersons:
		case is(c, "MN"):
			person = j
		case c == 'g', c == 'n' && !isNamed:
			isNamed, person = r.redact(row[j]), j
		case is(c, "csk"), c == 'b' && !isBorn && j-person <= nearby:
			isBorn = r.redact(row[j]) && c == 'b' || isBorn
		}
	}
}

// cellKind returns the kind that the value of a person's cell v looks like: a birth date, a number as long as a CPF or
// CNS or in groups as a card's, or a name. Fewer than half of a name's words may end as words of messages do.
func (r *reader) cellKind(v edit) kind {
	text, n := r.Chars[v.start:v.end], r.nameWords(v.start, v.end)
	digits := len(r.digitsOf(text))
	switch isNumber := digits == len(text); {
	case isNumber && digits == 11:
		return cpf
	case isNumber && digits == 15 && startsCNS(text):
		return cns
	case born.Match(text):
		return birth
	case kinds[card].nearLeast <= digits && digits <= kinds[card].nearMost && grouped.Match(text):
		return card
	case n.end == v.end && (n.isGiven || n.isSpaced && n.count > 2*n.messages) && listedName.Match(text):
		return name
	}
	return none
}
