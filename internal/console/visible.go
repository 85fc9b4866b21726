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
	for cut && most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	s = s[:min(len(s), most)]
	var b strings.Builder
	unseen := func(form string, of any) { fmt.Fprintf(&b, `<span class="unseen">`+form+`</span>`, of) }
	for i, r := range s {
		switch {
		case r == '\n' && lines:
			b.WriteByte('\n')
		case r == '\n', r == '\t', r == '\r' && strings.HasPrefix(s[i:], "\r\n"):
			b.WriteByte(' ')
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(r)): // no UTF-8
			unseen(`\x%02X`, s[i])
		case r < 0x20, r == 0x7f:
			unseen(`\x%02X`, r) // \x1B for ESC: every font has these letters
		case text.Hidden(r):
			unseen("U+%04X", r)
		default:
			b.WriteString(template.HTMLEscapeString(string(r)))
		}
	}
	if cut {
		unseen("%s", "…")
	}
	return template.HTML(b.String()) // every part is escaped above
}
