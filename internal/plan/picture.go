package plan

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The picture's measures in pixels. Its three columns are the retry with its wait, the ladder to scale, and the time
// from the first failure in words.
const (
	pictureWidth = 860
	margin       = 16
	waitColumn   = 60
	ladderColumn = 256
	ladderWidth  = 396
	wordsColumn  = 672
	rowHeight    = 28
	lineHeight   = 18
	barHeight    = 12
	nominalReach = 5 // of the nominal mark above and below the bar
	lineLetters  = 138
)

// style is all that the picture needs; the colours are variables that a page may set for .retry-plan.
//
//go:embed picture.css
var style string

// picture is an SVG in the making. y is where the next thing comes.
type picture struct {
	strings.Builder
	y float64
}

// SVG returns p as a picture that needs nothing else: no script, no font, no file; legible in light and dark. It can
// stand as a file of its own or inside an HTML page, where several may be side by side. The same plan gives the same
// bytes.
func (p *Plan) SVG() []byte {
	var body picture
	body.y = margin + 14
	body.text(margin, "name", "", p.Policy)
	for _, line := range wrap(p.subtitle()) {
		body.y += lineHeight + 2
		body.text(margin, "faint", "", line)
	}
	if len(p.Retries) > 0 {
		body.chart(p)
		body.legend(p)
	}
	body.y += 8
	for _, sentence := range p.Remarks {
		for _, line := range wrap(sentence) {
			body.y += lineHeight
			body.text(margin, "faint", "", line)
		}
	}
	return body.wrapUp(p)
}

// wrapUp puts body into its frame: size, title, description, style and paper.
func (body *picture) wrapUp(p *Plan) []byte {
	width, height := number(pictureWidth), number(body.y+margin)
	id := "retry-plan-" + idOf(p.Policy)
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" class="retry-plan" role="img" `+
		`aria-labelledby="%[1]s-title %[1]s-desc" width="%[2]s" height="%[3]s" viewBox="0 0 %[2]s %[3]s">
<title id="%[1]s-title">%[4]s</title>
<desc id="%[1]s-desc">%[5]s</desc>
<style>
%[6]s</style>
<rect class="paper" width="%[2]s" height="%[3]s"/>
%[7]s</svg>
`, id, width, height, escape("Retries of the policy "+p.Policy), escape(p.inWords()), style, body.String())
}

func (p *Plan) subtitle() string {
	if p.MaxRetries == 0 {
		return "0 retries"
	}
	retries := strconv.FormatInt(p.MaxRetries, 10) + " retries"
	if p.MaxRetries == 1 {
		retries = "1 retry"
	}
	return retries + ". Backoff " + p.Backoff + ". Total limit: " + p.limitWords() + "."
}

// inWords returns the whole picture for those who do not see it.
func (p *Plan) inWords() string {
	var all []string
	if p.MaxRetries > 0 {
		all = append(all, p.subtitle(), "After the first failure come:")
	}
	for _, r := range p.Retries {
		all = append(all,
			"retry "+strconv.FormatInt(r.Number, 10)+" after "+r.FromFirst.words()+", nominally "+
				r.FromFirst.Nominal.String()+" (wait "+r.Wait.words()+");")
	}
	return strings.Join(append(all, p.Remarks...), " ")
}

// chart draws the ladder: a row for each retry, the total limit, the axis below.
func (body *picture) chart(p *Plan) {
	a := axisOf(p, ladderWidth)
	body.y += 36
	body.text(margin, "faint", "", "retry")
	body.text(waitColumn, "faint", "", "wait")
	body.text(wordsColumn, "faint", "", "from the first failure")
	body.y += 8
	top, bottom := body.y, body.y+float64(rowHeight*len(p.Retries))+4
	for _, s := range p.Closed {
		body.closed(&a, s, top, bottom)
	}
	for _, t := range a.ticks() {
		body.line("grid", ladderColumn+t.at, top, ladderColumn+t.at, bottom)
	}
	for i := range p.Retries {
		body.row(&p.Retries[i], &a)
	}
	body.y = bottom
	body.limit(p, &a, top)
	body.axis(&a)
}

// closed shades a time in which the destination is closed.
func (body *picture) closed(a *axis, s Span, top, bottom float64) {
	from, until := a.place(time.Duration(s.From)), a.place(min(time.Duration(s.Until), a.to))
	if from < until {
		body.shade(ladderColumn+from, top, until-from, bottom-top)
	}
}

// row is one retry: its bar from the earliest to the latest, what is beyond the limit as an outline, the nominal mark.
func (body *picture) row(r *Retry, a *axis) {
	middle := body.y + rowHeight/2
	body.y = middle + 4
	body.text(margin, "", "", strconv.FormatInt(r.Number, 10))
	body.text(waitColumn, "", "", r.Wait.words())
	body.text(wordsColumn, "", "", r.FromFirst.words())
	from, to := a.place(time.Duration(r.FromFirst.Earliest)), a.place(time.Duration(r.FromFirst.Latest))
	within := to
	if r.MayPassLimit {
		within = a.limit
		body.rect("beyond", ladderColumn+within, middle-barHeight/2, to-within)
	}
	body.rect("bar", ladderColumn+from, middle-barHeight/2, within-from)
	nominal := ladderColumn + a.place(time.Duration(r.FromFirst.Nominal))
	body.line("nominal", nominal, middle-barHeight/2-nominalReach, nominal, middle+barHeight/2+nominalReach)
	body.y = middle + rowHeight/2
}

// limit draws the total limit where it stands, or behind a break of the axis.
func (body *picture) limit(p *Plan, a *axis, top float64) {
	if a.limit < 0 {
		return
	}
	x, bottom := ladderColumn+a.limit, body.y
	body.line("limit", x, top-4, x, bottom)
	name := "limit " + p.TotalLimit.String()
	if a.farLimit {
		name += " (not to scale)"
	}
	anchor := "end"
	if a.limit < ladderWidth/2 {
		anchor = "start"
	}
	body.y = top - 10
	body.text(x, "limit-name", anchor, name)
	body.y = bottom
}

// axis draws the line with its ticks' names and its title; where the limit is far off, the break before it.
func (body *picture) axis(a *axis) {
	y := body.y
	end := ladderColumn + a.width
	body.line("axis", ladderColumn, y, end, y)
	if a.farLimit {
		for _, x := range []float64{end, end + 5} {
			body.line("axis", x-3, y+5, x+3, y-5)
		}
		body.line("axis", end+5, y, ladderColumn+a.limit, y)
	}
	body.y = y + 16
	for _, t := range a.ticks() {
		body.line("axis", ladderColumn+t.at, y, ladderColumn+t.at, y+4)
		body.text(ladderColumn+t.at, "faint", "middle", t.name)
	}
	body.y += lineHeight
	body.text(ladderColumn+ladderWidth/2, "faint", "middle", a.title())
}

// legend explains the marks that are there.
func (body *picture) legend(p *Plan) {
	body.y += 28
	x := float64(margin)
	entry := func(words string, width float64, draw func(x, middle float64)) {
		draw(x, body.y-4)
		body.text(x+width+8, "faint", "", words)
		x += width + 32 + 6.2*float64(len(words))
	}
	nominal := "when it comes (no jitter)"
	if p.hasRange() {
		nominal = "nominal"
		entry("earliest to latest, by the jitter", 28,
			func(x, middle float64) { body.rect("bar", x, middle-barHeight/2, 28) })
	}
	entry(nominal, 4, func(x, middle float64) { body.line("nominal", x+2, middle-9, x+2, middle+9) })
	if p.TotalLimit > 0 {
		entry("total limit", 4, func(x, middle float64) { body.line("limit", x+2, middle-9, x+2, middle+9) })
	}
	if first, _ := p.passing(); first > 0 {
		entry("not scheduled if it falls here", 28,
			func(x, middle float64) { body.rect("beyond", x, middle-barHeight/2, 28) })
	}
	if p.Closed != nil {
		entry(p.Destination+" is closed", 28,
			func(x, middle float64) { body.shade(x, middle-barHeight/2, 28, barHeight) })
	}
	body.y += 8
}

func (p *Plan) hasRange() bool {
	return slices.ContainsFunc(p.Retries, func(r Retry) bool { return r.Wait.Earliest != r.Wait.Latest })
}

func (body *picture) text(x float64, class, anchor, s string) {
	attributes := ""
	for _, a := range [][2]string{{"class", class}, {"text-anchor", anchor}} {
		if a[1] != "" {
			attributes += fmt.Sprintf(` %s="%s"`, a[0], a[1])
		}
	}
	fmt.Fprintf(body, `<text x="%s" y="%s"%s>%s</text>`+"\n", number(x), number(body.y), attributes, escape(s))
}

func (body *picture) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(body, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`+"\n", class, number(x1), number(y1), number(x2),
		number(y2))
}

// rect is a bar's; one without width is not drawn.
func (body *picture) rect(class string, x, y, width float64) {
	if width <= 0 {
		return
	}
	fmt.Fprintf(body, `<rect class="%s" x="%s" y="%s" width="%s" height="%d" rx="2"/>`+"\n", class, number(x), number(y),
		number(width), barHeight)
}

func (body *picture) shade(x, y, width, height float64) {
	fmt.Fprintf(body, `<rect fill="#808080" fill-opacity="0.25" x="%s" y="%s" width="%s" height="%s"/>`+"\n", number(x),
		number(y), number(width), number(height))
}

// number of pixels with two decimals at most, the same on every machine.
func number(x float64) string {
	s := strconv.FormatFloat(x, 'f', 2, 64)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// escape makes s text of XML; what XML cannot hold becomes U+FFFD.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes all
	return b.String()
}

// idOf keeps of a policy's name what an XML id may hold.
func idOf(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, s)
}

// wrap breaks s between words, but not between a number and its unit, into lines that fit the picture.
func wrap(s string) []string {
	var lines []string
	line := ""
	for _, word := range wordsOf(s) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > lineLetters {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// wordsOf s, a number together with what follows it.
func wordsOf(s string) []string {
	var words []string
	afterNumber := false
	for _, word := range strings.Fields(s) {
		if afterNumber {
			words[len(words)-1] += " " + word
		} else {
			words = append(words, word)
		}
		_, err := strconv.ParseFloat(strings.TrimPrefix(word, "±"), 64)
		afterNumber = err == nil
	}
	return words
}
