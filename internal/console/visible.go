package console

import (
	"fmt"
	"html/template"
	"strings"
	"unicode/utf8"

	"retry-worker/internal/text"
)

const (
	// mostShown bytes of one text: what is behind them is not sent to a browser.
	mostShown = 8 << 10
	// lineShown bytes of a text in a table's row.
	lineShown = 160
	// detailShown bytes of a text in a paragraph, such as what is wrong with a catalogue.
	detailShown = 1000
	// nameShown bytes of an id or a name: whole, since ids are at most 512 bytes.
	nameShown = 1024
)

// inert returns somebody's text as HTML that does nothing: escaped, with controls, bidi marks and characters of no width
// shown by name, and cut. Line breaks stay where lines do.
func inert(s string, most int, lines bool) template.HTML {
	cut := len(s) > most
	if cut {
		for most > 0 && !utf8.RuneStart(s[most]) {
			most--
		}
		s = s[:most]
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch mark := unseen(r, size, s[0]); {
		case r == '\n' && lines:
			b.WriteByte('\n')
		case r == '\n' || r == '\t' || r == '\r' && strings.HasPrefix(s[size:], "\n"):
			b.WriteByte(' ')
		case mark != "":
			b.WriteString(`<span class="unseen">` + mark + `</span>`)
		default:
			b.WriteString(template.HTMLEscapeString(s[:size]))
		}
		s = s[size:]
	}
	if cut {
		b.WriteString(`<span class="unseen">…</span>`)
	}
	return template.HTML(b.String()) // every part is escaped above
}

// unseen names a character that would act, or not be seen; empty for any other.
func unseen(r rune, size int, first byte) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf("\\x%02X", first)
	case r == '\n' || r == '\t':
		return ""
	case r < 0x20, r == 0x7f:
		return fmt.Sprintf("\\x%02X", r) // \x1B for ESC: letters that every font has
	case text.Hidden(r):
		return fmt.Sprintf("U+%04X", r)
	default:
		return ""
	}
}
