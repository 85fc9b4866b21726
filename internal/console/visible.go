package console

import (
	"fmt"
	"html/template"
	"strings"
	"unicode/utf8"

	"retry-worker/internal/text"
)

const (
	// mostShown bounds the bytes of a text that is shown in full.
	mostShown = 8 << 10
	// lineShown bounds a text in a table's row.
	lineShown = 160
	// detailShown bounds a text in a paragraph, such as what is wrong with a catalogue.
	detailShown = 1000
	// nameShown bounds an id or a name; it cuts no id, since these have at most 512 bytes.
	nameShown = 1024
)

// inert returns a text as HTML that does nothing: escaped, cut to most bytes, with control, bidi and zero-width
// characters shown by their codes. Line breaks stay if lines is set.
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

// unseen returns the code of a character that would act or be invisible; empty for any other.
func unseen(r rune, size int, first byte) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf("\\x%02X", first)
	case r == '\n' || r == '\t':
		return ""
	case r < 0x20, r == 0x7f:
		return fmt.Sprintf("\\x%02X", r) // \x1B for ESC: every font has these letters
	case text.Hidden(r):
		return fmt.Sprintf("U+%04X", r)
	default:
		return ""
	}
}
