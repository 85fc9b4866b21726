package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"golang.org/x/net/html"

	"retry-worker/internal/access"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/console"
	"retry-worker/internal/guard"
	"retry-worker/internal/notify"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
)

// site is the pages over a world, as one reader sees them.
type site struct {
	t      testing.TB
	world  world
	pages  *console.Pages
	who    access.Identity
	lang   string
	header http.Header
	// untold are the notices that could not be sent.
	untold []notify.Waiting
	// claim is the hospital's own page of one.
	claim string
	// down is an engine that does not answer.
	down bool
	// catalogue is in force in place of the built-in one.
	catalogue *catalogue.Catalogue
}

func open(t testing.TB, w world) *site {
	t.Helper()
	s := unopened(t, w)
	s.links("", "")
	return s
}

// unopened is a site whose pages are not there before its links are.
func unopened(t testing.TB, w world) *site {
	return &site{t: t, world: w, who: access.Identity{Name: "ana.souza", Role: access.Admin}, lang: "en", header: http.Header{}, catalogue: catalogue.Default()}
}

// links has the pages lead to Operate and Grafana, too.
func (s *site) links(operate, grafana string) {
	w, since, ctx := s.world, s.world.Now(), s.t.Context()
	figures := func() []statistics.KPI {
		all, _ := statistics.KPIs(ctx, w.Memory, s.catalogue.Policies.Names(), "", w.Now()) // none while the store is down
		return all
	}
	backlog := func() map[string]int64 {
		waiting, _ := w.Memory.Backlog(ctx)
		return waiting
	}
	s.pages = console.New(console.Options{Now: w.Now, Zone: brasilia, Catalogue: func() *catalogue.Catalogue { return s.catalogue }, Log: zap.NewNop(), Operate: operate, Grafana: grafana, Claim: s.claim, Health: func() console.Health {
		return console.Health{Journal: console.Signal{Up: true, Since: since}, Engine: console.Signal{Up: !s.down, Since: since}, Notices: s.untold, Backlog: backlog(), KPIs: figures()}
	}})
	s.pages.Open(w.Memory, guard.New(w.Services()))
}

// as is the same site for somebody of another role.
func (s *site) as(role access.Role) *site {
	other := *s
	other.who.Role = role
	return &other
}

func (s *site) ask(r *http.Request) *httptest.ResponseRecorder {
	s.t.Helper()
	for name, values := range s.header {
		r.Header[name] = values
	}
	r.Header.Set("Accept-Language", s.lang)
	w := httptest.NewRecorder()
	s.pages.ServeHTTP(w, r.WithContext(access.Within(r.Context(), s.who)))
	return w
}

func (s *site) get(address string) *httptest.ResponseRecorder {
	s.t.Helper()
	return s.ask(httptest.NewRequest(http.MethodGet, address, nil))
}

// send sends a form.
func (s *site) send(address string, form url.Values) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	testkit.Must(s.t, r.ParseForm()) // as the gate does
	return s.ask(r)
}

// doc is a page that was answered with that status, and that is sound.
func (s *site) doc(w *httptest.ResponseRecorder, status int) *doc {
	s.t.Helper()
	if w.Code != status {
		s.t.Fatalf("got %d, want %d: %.300s", w.Code, status, w.Body)
	}
	root, err := html.Parse(strings.NewReader(w.Body.String()))
	testkit.Must(s.t, err)
	d := &doc{s.t, root, w.Body.String()}
	if status < 300 || status >= 400 { // what leads elsewhere is no page
		d.mustBeSound()
	}
	return d
}

func (s *site) page(address string) *doc {
	s.t.Helper()
	return s.doc(s.get(address), http.StatusOK)
}

// doc is a parsed page.
type doc struct {
	t    testing.TB
	root *html.Node
	raw  string
}

// all elements that match, in the order of the page.
func (d *doc) all(match func(*html.Node) bool) (found []*html.Node) {
	for n := range d.root.Descendants() {
		if n.Type == html.ElementNode && match(n) {
			found = append(found, n)
		}
	}
	return found
}

func (d *doc) tags(names ...string) []*html.Node {
	return d.all(func(n *html.Node) bool { return slices.Contains(names, n.Data) })
}

func (d *doc) id(id string) *html.Node {
	found := d.all(func(n *html.Node) bool { return attr(n, "id") == id })
	if len(found) == 0 {
		return nil
	}
	return found[0]
}

// says reports whether the page has the words, its white space aside.
func (d *doc) says(words string) bool { return strings.Contains(text(d.root), words) }

// mustSay fails the test for words that the page has not.
func (d *doc) mustSay(all ...string) {
	d.t.Helper()
	for _, words := range all {
		if !d.says(words) {
			d.t.Errorf("it does not say %q: %s", words, text(d.tags("main")[0]))
		}
	}
}

// outline is what an element says, a line for each of its blocks.
func outline(of *html.Node) string {
	blocks := []string{"h1", "h2", "h3", "p", "li", "tr", "dt", "dd", "div", "section", "form", "legend", "summary", "button", "caption", "label"}
	var lines []string
	line := ""
	end := func() {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
		line = ""
	}
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			line += n.Data + " "
		}
		block := slices.Contains(blocks, n.Data)
		if block {
			end()
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
		if block {
			end()
		}
	}
	walk(of)
	end()
	return strings.Join(lines, "\n")
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

// text of an element as it reads.
func text(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode && c.Parent.Data != "script" && c.Parent.Data != "style" {
			b.WriteString(c.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// mustBeSound holds what every page must be, whatever is on it.
func (d *doc) mustBeSound() {
	d.t.Helper()
	title := text(d.tags("title")[0])
	bad := func(format string, args ...any) {
		d.t.Helper()
		d.t.Errorf("%s: "+format, append([]any{title}, args...)...)
	}
	if len(title) < len("x · retry-worker") {
		bad("the title says nothing")
	}
	for _, landmark := range []string{"main", "header", "footer", "h1"} {
		if n := len(d.tags(landmark)); n != 1 {
			bad("%d %s, want 1", n, landmark)
		}
	}
	if links := d.tags("a"); len(links) == 0 || attr(links[0], "href") != "#main" || d.id("main") == nil {
		bad("the first link does not skip to the content")
	}
	if len(d.pick("#said[role=status]")) != 1 {
		bad("there is no place to tell what changed")
	}
	if m := missing.FindString(d.raw); m != "" {
		bad("a text is missing: %s", m)
	}
	checkHeadings(d, bad)
	checkIDs(d, bad)
	checkFields(d, bad)
	checkTables(d, bad)
	checkPolicy(d, bad)
}

// missing is what stands where a text should.
var missing = regexp.MustCompile(`\[[a-z_]+(\.[a-z_A-Z0-9]+)+\]|%!|<no value>|ZgotmplZ`)

type complain func(format string, args ...any)

func checkHeadings(d *doc, bad complain) {
	level := 0
	for _, h := range d.tags("h1", "h2", "h3", "h4") {
		n := int(h.Data[1] - '0')
		if n > level+1 {
			bad("heading %q of level %d follows level %d", text(h), n, level)
		}
		if text(h) == "" {
			bad("a heading of level %d is empty", n)
		}
		level = n
	}
}

func checkIDs(d *doc, bad complain) {
	seen := map[string]bool{}
	for _, n := range d.all(func(n *html.Node) bool { return has(n, "id") }) {
		if id := attr(n, "id"); seen[id] || id == "" {
			bad("the id %q stands twice, or is empty", id)
		}
		seen[attr(n, "id")] = true
	}
	for _, n := range d.all(func(*html.Node) bool { return true }) {
		if has(n, "data-live") && attr(n, "id") == "" {
			bad("a live <%s> has no id", n.Data)
		}
		for _, name := range []string{"aria-labelledby", "aria-describedby", "for"} {
			for id := range strings.FieldsSeq(attr(n, name)) {
				if !seen[id] {
					bad("%s of <%s> names %q, which is not there", name, n.Data, id)
				}
			}
		}
		if at := attr(n, "tabindex"); at != "" && at != "0" && at != "-1" {
			bad("tabindex %s changes the order of the page", at)
		}
	}
}

func checkFields(d *doc, bad complain) {
	labelled := map[string]bool{}
	for _, l := range d.tags("label") {
		if text(l) == "" {
			bad("a label says nothing")
		}
		labelled[attr(l, "for")] = true
	}
	inLabels := append(d.pick("label/[name]"), d.pick("label/[id]")...)
	for _, f := range d.tags("input", "select", "textarea") {
		if attr(f, "type") != "hidden" && !labelled[attr(f, "id")] && !slices.Contains(inLabels, f) {
			bad("the field %s has no label", attr(f, "name"))
		}
	}
	for _, n := range d.tags("a", "button", "summary", "legend") {
		if text(n) == "" && attr(n, "aria-label") == "" {
			bad("a <%s> says nothing", n.Data)
		}
	}
	for _, n := range d.tags("svg", "img") {
		if attr(n, "aria-hidden") != "true" && (attr(n, "role") != "img" || attr(n, "aria-labelledby") == "") && attr(n, "alt") == "" {
			bad("a picture says nothing to those who do not see it")
		}
	}
	for _, n := range d.all(func(n *html.Node) bool {
		return n.Data == "nav" || attr(n, "role") == "region" || attr(n, "role") == "search"
	}) {
		if attr(n, "aria-label") == "" && attr(n, "aria-labelledby") == "" {
			bad("a <%s> has no name", n.Data)
		}
	}
	for _, f := range d.tags("form") {
		if m := attr(f, "method"); m != "get" && m != "post" {
			bad("a form has the method %q", m)
		} else if token := d.all(func(n *html.Node) bool { return attr(n, "name") == access.FormTokenField && within(n, f) }); m == "post" && attr(f, "action") != "/login" && len(token) != 1 {
			bad("the form for %s has no token", attr(f, "action"))
		}
	}
}

func within(n, outer *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if n == outer {
			return true
		}
	}
	return false
}

func checkTables(d *doc, bad complain) {
	for _, table := range d.tags("table") {
		captions := 0
		for n := range table.Descendants() {
			switch {
			case n.Data == "caption" && text(n) != "":
				captions++
			case n.Data == "th" && !has(n, "scope"):
				bad("the heading %q of a table has no scope", text(n))
			}
		}
		if captions != 1 {
			bad("a table has %d captions", captions)
		}
	}
}

// checkPolicy: nothing that the Content-Security-Policy would have to let through, and nothing from elsewhere.
func checkPolicy(d *doc, bad complain) {
	for _, n := range d.all(func(*html.Node) bool { return true }) {
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" {
				bad("<%s> has %s, which the policy forbids", n.Data, a.Key)
			}
			outside := n.Data == "a" && strings.Contains(attr(n, "rel"), "noreferrer") && strings.HasPrefix(a.Val, "https://")
			if slices.Contains([]string{"href", "src", "action", "formaction"}, a.Key) && !outside && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") || strings.HasPrefix(a.Val, "//") {
				bad("<%s %s=%q> leads elsewhere", n.Data, a.Key, a.Val)
			}
		}
		switch {
		case n.Data == "style", n.Data == "iframe", n.Data == "object", n.Data == "base", n.Data == "img":
			bad("there is a <%s>", n.Data)
		case n.Data == "script" && (n.FirstChild != nil || !strings.HasPrefix(attr(n, "src"), console.AssetsPrefix)):
			bad("there is a script that is no file of ours")
		}
	}
}
