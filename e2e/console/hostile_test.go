package console_test

import (
	"net/url"
	"testing"
)

// hostileID is one that the policy's pattern lets through.
const hostileID = `CLM-"><img src=x onerror=alert(1)>-1040`

// TestHostileTextsAreInert: what the portal answers, and what a claim is called, are shown and do nothing. That there
// is no dialog, no error in the console, nothing blocked by the policy and no request elsewhere, every tab sees to.
func TestHostileTextsAreInert(t *testing.T) {
	s := open(t)
	acts := `AUTHORIZATION_DENIED <script>alert(1)</script><img src="http://192.0.2.1/x.png" onerror="alert(2)">` +
		"\x1b[31mred\x1b]0;title\x07\x1b[0m \u202Egnp.exe\u2066 \u200b\u2028 </textarea></pre></script><style>body{display:none}</style>" +
		`<a href="javascript:alert(3)">here</a> {{.Token}} ${7*7} <meta http-equiv="refresh" content="0;url=http://192.0.2.1/"><form action="http://192.0.2.1/">`
	s.submit(t, hostileID, 0, acts)
	s.deadLetter(t, hostileID)

	b := s.visit(t, "pt-BR")
	for _, path := range []string{"/", "/dead-letters", "/dead-letters?q=" + "CLM-%22", subject(hostileID), "/audit", "/audit?policy=tiss-submission&id=CLM-%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E-1040"} {
		b.open(path)
		b.await("the page", `document.readyState === "complete"`)
		b.inert(path)
	}
	b.open(subject(hostileID))
	b.says("h1", hostileID)
	b.says("#events", `<script>alert(1)</script>`, `<a href="javascript:alert(3)">`, `{{.Token}}`, `${7*7}`)
	b.await("it is kept up to date, beside such texts", `!document.querySelector("#live").hidden`)

	// A person's words are no better.
	b.write("#retry-reason", `</blockquote><script>alert(4)</script><img src=x onerror=alert(5)>`)
	b.click("#retry button[type=submit]")
	b.await("what can be undone", `document.querySelector("#later")`)
	b.says("#later", `<script>alert(4)</script>`)
	b.inert("a hostile reason")
	for _, query := range []string{`"><script>alert(6)</script>`, `' OR 1=1 --`, "%_%", "\u202Ex"} {
		b.open("/dead-letters?q=" + url.QueryEscape(query) + "&policy=" + url.QueryEscape(query) + "&team=" + url.QueryEscape(query))
		b.inert("a search for " + query)
	}
}

// inert fails the test where a text has become part of the page.
func (b *tab) inert(where string) {
	b.t.Helper()
	found := eval[[]string](b, `[...document.querySelectorAll("script, img, iframe, style, meta[http-equiv], form[action^=http], a[href^='javascript:']")]
		.filter(e => !(e.tagName === "SCRIPT" && e.src.startsWith(location.origin + "/assets/"))).map(e => e.outerHTML.slice(0, 200))`)
	if len(found) > 0 {
		b.t.Errorf("%s: texts have become elements: %q", where, found)
	}
	// Bytes that steer a terminal, a text's direction, or cannot be seen at all.
	if steering := eval[[]string](b, `[...new Set(document.documentElement.outerHTML.match(/[\u0000-\u0008\u000b-\u001f\u007f\u200b\u202a-\u202e\u2066-\u2069\u2028\u2029]/g) ?? [])].map(c => "U+" + c.codePointAt(0).toString(16))`); len(steering) > 0 {
		b.t.Errorf("%s: characters that steer are on the page as they came: %v", where, steering)
	}
	if !eval[bool](b, `document.querySelector("main").checkVisibility()`) {
		b.t.Errorf("%s: the page is not to be seen", where)
	}
}
