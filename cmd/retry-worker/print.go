package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"retry-worker/internal/text"
)

// The longest value, in characters: in a table, and elsewhere.
const (
	maxCell  = 80
	maxValue = 2000
)

// print prints v as one line of JSON with -o json, otherwise for people: a line for each member, and a table for each
// list of objects. columns holds the columns of those tables, each as "list: path path …".
func (c *cli) print(v any, columns ...string) error {
	encoded, is := v.([]byte)
	if !is {
		encoded = text.JSON(v)
	}
	if c.json() {
		_, err := fmt.Fprintf(c.out, "%s\n", encoded)
		return err
	}
	shown, err := text.Decode(encoded)
	if err != nil {
		return fmt.Errorf("read what is to be printed: %w", err)
	}
	paths := map[string]string{}
	for _, list := range columns {
		name, of, _ := strings.Cut(list, ": ")
		paths[name] = of
	}
	c.sheet(shown, paths)
	return nil
}

// sheet prints a line for each member that is not empty, nor 0 or false in a nested object. Lists of objects follow as
// tables.
func (c *cli) sheet(v any, columns map[string]string) {
	o, is := v.(text.Object)
	if !is {
		o = text.Object{{Value: v}}
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	var lists text.Object
	lines := 0
	var walk func(prefix string, o text.Object)
	walk = func(prefix string, o text.Object) {
		for _, m := range o {
			label := inertLine(prefix+" "+worded(m.Name), maxCell)
			if below, is := m.Value.(text.Object); is {
				walk(label, below)
				continue
			}
			value, isText := m.Value.(string) // in full
			if !isText {
				value = cell(m.Value)
			}
			if list, is := m.Value.([]any); is && len(list) > 0 && isObject(list[0]) {
				lists = append(lists, m)
			} else if value != "" && (prefix == "" || value != "0" && value != "false") {
				fmt.Fprintf(w, "%s\t%s\n", label, inertLine(value, maxValue))
				lines++
			}
		}
	}
	walk("", o)
	_ = w.Flush() // c.out remembers write errors
	for _, list := range lists {
		if lines > 0 || len(lists) > 1 {
			fmt.Fprintf(c.out, "\n%s\n", worded(list.Name))
		}
		c.table(list.Value.([]any), columns[list.Name], true, maxValue)
	}
}

func isObject(v any) bool { _, is := v.(text.Object); return is }

// table prints objects, one in a line, with cells of up to most characters. Lines of maxCell are cut to the terminal's
// width. Without paths, the columns are the first object's members that are not objects.
func (c *cli) table(items []any, paths string, head bool, most int) {
	names := strings.Fields(paths)
	if first, is := items[0].(text.Object); is && paths == "" {
		for _, m := range first {
			if !isObject(m.Value) {
				names = append(names, m.Name)
			}
		}
	}
	var printed strings.Builder
	w := tabwriter.NewWriter(&printed, 0, 0, 2, ' ', 0)
	if head {
		fmt.Fprintln(w, strings.ToUpper(strings.Join(each(names, func(path string) string {
			path = strings.TrimSuffix(path, ".id")
			return worded(path[strings.LastIndex(path, ".")+1:])
		}), "\t")))
	}
	least := 0 // the first column stays whole, as input for other commands
	for _, item := range items {
		o, _ := item.(text.Object)
		cells := each(names, func(name string) string { return inertLine(cell(o.Get(name)), most) })
		least = max(least, utf8.RuneCountInString(cells[0]))
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush() // cannot fail
	width := 0
	if most == maxCell {
		width = terminalWidth(c.out.w)
	}
	for line := range strings.Lines(printed.String()) {
		line = strings.TrimRight(line, " \n")
		switch {
		case width > least+2:
			line = cutLine(line, width)
		case width > 0:
			line, _, _ = strings.Cut(line, "  ")
		}
		fmt.Fprintln(c.out, line)
	}
}

// each returns of(item) for each item.
func each[T any](all []T, of func(T) string) []string {
	texts := make([]string, len(all))
	for i := range all {
		texts[i] = of(all[i])
	}
	return texts
}

// cell returns a value as one text, an instant without seconds.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			return at.Format("2006-01-02 15:04")
		}
	case []any:
		return strings.Join(each(v, cell), ", ")
	case text.Object:
		return strings.Join(slices.DeleteFunc(each(v, func(m text.Member) string { return cell(m.Value) }),
			func(s string) bool { return s == "" }), " ")
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return strconv.FormatFloat(f, 'g', 4, 64)
		}
	}
	return fmt.Sprint(v)
}

// worded splits a member's name into words.
func worded(name string) string { return strings.ReplaceAll(text.Apart(name, " "), "_", " ") }

// inertLine returns s as one line of up to most characters, without anything that a terminal acts on.
func inertLine(s string, most int) string {
	return cutLine(strings.Join(strings.Fields(text.Inert(s)), " "), most)
}

// cutLine returns a line, cut to most characters.
func cutLine(line string, most int) string {
	if runes := []rune(line); len(runes) > most {
		return string(runes[:max(0, most-1)]) + "…"
	}
	return line
}

// terminalWidth returns how many characters fit on a line of the terminal: COLUMNS, if set; 0 without a terminal.
func terminalWidth(out io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if file, is := out.(*os.File); is {
		width, _, _ := term.GetSize(int(file.Fd())) // 0 without a terminal
		return width
	}
	return 0
}

// progress shows the progress of a long task on one line of a terminal, which it overwrites.
type progress struct {
	w            io.Writer // nil without a terminal
	what         string
	began, drawn time.Time
}

// progress returns a progress line on standard error, if that is a terminal.
func (c *cli) progress(what string) *progress {
	p := &progress{what: what, began: time.Now()}
	if f, is := c.errOut.(*os.File); is && term.IsTerminal(int(f.Fd())) {
		p.w = f
	}
	return p
}

// show shows how much is done, and how many things were counted, at most ten times a second.
func (p *progress) show(done, of, counted int64) {
	if p.w == nil || time.Since(p.drawn) < 100*time.Millisecond {
		return
	}
	p.drawn = time.Now()
	line := fmt.Sprintf("%d %s", counted, p.what)
	if done > 0 && of > 0 {
		left := time.Duration(float64(time.Since(p.began)) * (float64(of)/float64(done) - 1))
		line += fmt.Sprintf(", %d %%, %s left", min(100*done/of, 100), max(left, 0).Round(time.Second))
	}
	if width := terminalWidth(p.w); width > 1 {
		line = cutLine(line, width-1)
	}
	fmt.Fprint(p.w, "\r"+line+"\x1b[K")
}

// end clears the line.
func (p *progress) end() {
	if !p.drawn.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
