package console_test

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

var (
	// selectors are quoted words, $Header, or steps with / between them and an attribute that is shown behind them: nav/a@href.
	selectors = regexp.MustCompile(`"[^"]*"|\S+`)
	step      = regexp.MustCompile(`^(\w*)((?:[#.][\w-]+|\[[\w-]+(?:=[^\]]*)?\])*)$`)
	steps     = regexp.MustCompile(`(?:\[[^\]]*\]|[^/\[])+`)
	condition = regexp.MustCompile(`([#.\[])([\w-]+)(?:=([^\]]*))?`)
)

// pick returns the elements that a selector finds.
func (d *doc) pick(selector string) (found []*html.Node) {
	d.t.Helper()
	found = []*html.Node{d.root}
	for _, part := range steps.FindAllString(selector, -1) {
		m := step.FindStringSubmatch(part)
		if m == nil {
			d.t.Fatalf("%s is no selector", selector)
		}
		var next []*html.Node
		for _, from := range found {
			for n := range from.Descendants() {
				if n.Type == html.ElementNode && (m[1] == "" || n.Data == m[1]) && meets(n, m[2]) && !slices.Contains(next, n) {
					next = append(next, n)
				}
			}
		}
		found = next
	}
	return found
}

func meets(n *html.Node, conditions string) bool {
	for _, c := range condition.FindAllStringSubmatch(conditions, -1) {
		switch {
		case c[1] == "#" && attr(n, "id") != c[2], c[1] == "." && !slices.Contains(strings.Fields(attr(n, "class")), c[2]),
			c[1] == "[" && (!has(n, c[2]) || strings.Contains(c[0], "=") && attr(n, c[2]) != c[3]):
			return false
		}
	}
	return true
}

// form returns what a browser would send by a form, or by one of its buttons, and to where.
func (d *doc) form(pressed *html.Node) (values url.Values, method, address string) {
	values = url.Values{}
	form := pressed
	for ; form.Data != "form"; form = form.Parent {
		address = cmp.Or(address, attr(form, "formaction"))
		if name := attr(form, "name"); name != "" {
			values.Set(name, attr(form, "value"))
		}
	}
	for _, n := range d.pick("[name]") {
		if has(n, "form") && attr(n, "form") != attr(form, "id") || !has(n, "form") && !within(n, form) || n.Data == "button" {
			continue
		}
		switch kind := attr(n, "type"); {
		case (kind == "radio" || kind == "checkbox") && !has(n, "checked"):
		case n.Data == "textarea":
			values.Add(attr(n, "name"), text(n))
		default:
			values.Add(attr(n, "name"), attr(n, "value"))
		}
	}
	address, _, _ = strings.Cut(cmp.Or(address, attr(form, "action")), "#")
	return values, strings.ToUpper(attr(form, "method")), address
}

// show returns what a selector finds: the lines of one element, or the texts or attributes of several; their number behind @n.
func (d *doc) show(selector string) string {
	d.t.Helper()
	selector, name, _ := strings.Cut(selector, "@")
	found := d.pick(selector)
	if name == "n" {
		return fmt.Sprint(len(found))
	}
	if lines := ""; len(found) == 1 && name == "" {
		if lines = outline(found[0]); strings.Contains(lines, "\n") {
			return "\n  " + strings.ReplaceAll(lines, "\n", "\n  ")
		}
		return cmp.Or(lines, "there")
	}
	var texts []string
	between := " | "
	for _, n := range found {
		if name != "" {
			texts = append(texts, attr(n, name))
		} else {
			texts = append(texts, cmp.Or(text(n), "-"))
		}
		if strings.Contains(texts[len(texts)-1], " ") {
			between = "\n  "
		}
	}
	if len(texts) > 1 && between != " | " {
		return between + strings.Join(texts, between)
	}
	return strings.Join(texts, between)
}
