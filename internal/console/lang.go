package console

import (
	_ "embed" // texts are part of the program
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

// Lang is the BCP 47 tag of a language of the pages. The set is closed.
type Lang string

// The languages; a browser that asks for neither gets Portuguese.
const (
	Portuguese Lang = "pt-BR"
	English    Lang = "en"
)

// Langs lists them all.
func Langs() []Lang { return []Lang{Portuguese, English} }

//go:embed texts.yaml
var textsFile []byte

// texts holds the texts by key and language, and the tones of badges. They are parsed at first use, since most
// processes show none; this package's tests prove that they can be.
var texts = sync.OnceValue(func() (all map[string]map[Lang]string) {
	if err := yaml.Unmarshal(textsFile, &all); err != nil {
		panic("console: " + err.Error())
	}
	return all
})

// T returns the text of a key with its arguments filled in. A test finds missing keys.
func (l Lang) T(key string, args ...any) string {
	s := l.Or(key, "["+key+"]")
	if len(args) == 0 {
		return s
	}
	return fmt.Sprintf(s, args...)
}

// Or returns the text of a key, or fallback if there is none: for names that a catalogue of policies may add.
func (l Lang) Or(key, fallback string) string {
	if s, ok := texts()[key][l]; ok {
		return s
	}
	return fallback
}

// Count returns the text of key.one or key.other with the number filled in.
func (l Lang) Count(key string, n int64) string {
	form := ".other"
	if n == 1 || n == -1 {
		form = ".one"
	}
	return l.T(key+form, l.Number(n))
}

// printers write numbers as each language does.
var printers = map[Lang]*message.Printer{Portuguese: message.NewPrinter(language.BrazilianPortuguese),
	English: message.NewPrinter(language.English)}

// Number returns n with its thousands separated.
func (l Lang) Number(n int64) string { return printers[l].Sprintf("%d", n) }

// Decimal returns x with that many decimals.
func (l Lang) Decimal(x float64, decimals int) string {
	return l.point(strconv.FormatFloat(x, 'f', decimals, 64))
}

// short returns x with at most that many decimals.
func (l Lang) short(x float64, decimals int) string {
	s := l.Decimal(x, decimals)
	if strings.ContainsAny(s, ".,") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".,")
	}
	return s
}

// percent returns a ratio as a percentage.
func (l Lang) percent(ratio float64) string { return l.short(100*ratio, 1) + " %" }

// point returns number with the language's decimal mark.
func (l Lang) point(number string) string {
	if l == Portuguese {
		return strings.Replace(number, ".", ",", 1)
	}
	return number
}

// langCookie keeps the language that the reader chose.
const langCookie = "lang"

// languages matches what a request asks for to an index of Langs, 0 if nothing matches.
var languages = language.NewMatcher([]language.Tag{language.BrazilianPortuguese, language.English})

// langOf returns a request's language: the one chosen now (?lang=) or before (cookie), otherwise the browser's. chosen
// reports whether it was chosen now.
func langOf(r *http.Request) (l Lang, chosen bool) {
	now := r.URL.Query().Get("lang")
	_, i := language.MatchStrings(languages, now, kept(r, langCookie), r.Header.Get("Accept-Language"))
	return Langs()[i], now != ""
}

// reason returns a reason in words, or its code if it has none. A rule of an HTTP status is named by the status.
func (l Lang) reason(r decision.Reason) string {
	if status, ok := strings.CutPrefix(string(r), "http-"); ok {
		return l.T("reason.http", status)
	}
	return l.Or("reason."+string(r), string(r))
}

// policy returns the name that people have for a policy; a catalogue's own policy keeps its name.
func (l Lang) policy(name string) string { return l.Or("policy."+name, name) }

// retry says which of most retries number n is; one beyond most is extra.
func (l Lang) retry(n, most int64) string {
	switch {
	case n <= most:
		return l.T("retries.of", l.Number(n), l.Number(most))
	case most == 0:
		return l.T("retries.extra")
	default:
		return l.Count("retries.extra", most)
	}
}

// retries says how many of most retries were made.
func (l Lang) retries(n, most int64) string {
	if n <= most {
		return l.T("retries.of", l.Number(n), l.Number(most))
	}
	return l.T("retries.made", l.Number(most), l.Number(most), l.Number(n-most))
}

// team returns the name that people have for a team; a catalogue's own team keeps its name.
func (l Lang) team(t decision.Team) string {
	if t == "" {
		return l.T("team.none")
	}
	return l.Or("team."+string(t), string(t))
}

// Badge shows a state by a word and a shape, never by colour alone.
type Badge struct {
	Tone string // chooses colour and shape: ok, bad, warn, wait or off
	Word string
}

// badge returns the badge of a state. Its word is the text of name and state, or the state itself.
func (l Lang) badge(name string, state any) Badge {
	word := fmt.Sprint(state)
	return Badge{texts()[name+"."+word]["tone"], l.Or(name+"."+word, word)}
}

// subjectURL returns the address of a subject's page, with more fields. It names the tenant unless it is the default.
func subjectURL(s journal.Subject, more ...field) string {
	if s.Tenant != journal.DefaultTenant {
		more = append(more, field{"tenant", s.Tenant})
	}
	return address("/subjects/"+segment(s.Policy)+"/"+segment(s.ID), more...)
}

// segment returns s escaped as one segment of a path.
func segment(s string) string { return strings.ReplaceAll(url.PathEscape(s), "+", "%2B") }

// Moment is an instant as a page shows it: in words, with the exact time beside them.
type Moment struct {
	// ISO is the instant in UTC by RFC 3339; UTC is the same for people.
	ISO, UTC string
	// Text is what is read: an age, a countdown, or date and time in the hospital's zone.
	Text string
	// Kind tells the script how to update Text: ago, for, in, due (as in, until it is overdue), or at (never).
	Kind string
	Late bool // whether it is a deadline that has passed
}

// Set reports whether there is an instant.
func (m Moment) Set() bool { return m.ISO != "" }

func (v *visit) moment(t time.Time, kind, text string) Moment {
	if t.IsZero() {
		return Moment{}
	}
	return Moment{ISO: decision.Instant(t), UTC: t.UTC().Format("2006-01-02 15:04:05") + " UTC", Text: text, Kind: kind}
}

// At returns t as date and time in the hospital's zone.
func (v *visit) At(t time.Time) Moment { return v.moment(t, "at", v.Clock(t)) }

// Ago returns how long ago t was.
func (v *visit) Ago(t time.Time) Moment { return v.moment(t, "ago", v.ago(v.Now.Sub(t))) }

// For returns how long something has lasted since t.
func (v *visit) For(t time.Time) Moment {
	if v.Now.Sub(t) < time.Minute {
		return v.Ago(t)
	}
	return v.moment(t, "for", v.T("time.for", v.span(v.Now.Sub(t))))
}

// In returns how long it is until t.
func (v *visit) In(t time.Time) Moment { return v.moment(t, "in", v.in(t.Sub(v.Now))) }

// Due returns how long it is until a deadline, or by how much it is overdue.
func (v *visit) Due(t time.Time) Moment {
	m := v.moment(t, "due", v.in(t.Sub(v.Now)))
	if v.Past(t) && m.Set() {
		m.Text, m.Late = v.T("time.overdue", v.span(v.Now.Sub(t))), true
	}
	return m
}

// Expires returns the day of a deadline, or by how much it is overdue.
func (v *visit) Expires(t time.Time) Moment {
	day := func(t time.Time) string { return t.In(v.zone).Format(time.DateOnly) }
	switch {
	case v.Past(t):
		return v.Due(t)
	case day(t) == day(v.Now):
		return v.moment(t, "at", v.T("due.on.today"))
	case day(t) == day(v.Now.In(v.zone).AddDate(0, 0, 1)):
		return v.moment(t, "at", v.T("due.on.tomorrow"))
	}
	return v.moment(t, "at", v.T("due.on", v.ShortDay(t)))
}

// Past reports whether t has come.
func (v *visit) Past(t time.Time) bool { return !t.After(v.Now) }

// Clock returns date and time to the second, with the word today for today's date.
func (v *visit) Clock(t time.Time) string {
	local, today := t.In(v.zone), v.Now.In(v.zone)
	if local.Year() == today.Year() && local.YearDay() == today.YearDay() {
		return v.T("time.today", local.Format("15:04:05"))
	}
	return v.when(t)
}

// Day returns the date in the hospital's zone.
func (v *visit) Day(t time.Time) string { return v.date("time.day", t) }

// ShortDay returns the date without its year.
func (v *visit) ShortDay(t time.Time) string { return v.date("time.short_day", t) }

// date returns t in the hospital's zone, by the layout of that key.
func (v *visit) date(key string, t time.Time) string { return t.In(v.zone).Format(v.T(key)) }

// ago returns an age in words; console.js updates it by the same rules.
func (l Lang) ago(d time.Duration) string {
	if d < time.Minute {
		return l.T("time.just_now")
	}
	return l.T("time.ago", l.span(d))
}

// in returns a countdown in words, with seconds below ten minutes.
func (l Lang) in(d time.Duration) string {
	if d = d.Round(time.Second); d <= 0 {
		return l.T("time.now")
	}
	return l.T("time.in", l.fine(d))
}

// fine returns what span does, but with seconds below ten minutes; d is in whole seconds.
func (l Lang) fine(d time.Duration) string {
	if d >= time.Minute && d < 10*time.Minute && d%time.Minute > 0 {
		return l.span(d) + " " + l.span(d%time.Minute)
	}
	return l.span(d)
}

// span returns a duration in its largest units: 38 s, 14 min, 5 h 10 min, 3 days.
func (l Lang) span(d time.Duration) string {
	d = max(d, 0)
	minutes := int(d / time.Minute)
	switch {
	case d < time.Second:
		return strconv.Itoa(int(d/time.Millisecond)) + " ms"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < time.Hour:
		return strconv.Itoa(minutes) + " min"
	case d < 48*time.Hour && minutes%60 > 0:
		return strconv.Itoa(minutes/60) + " h " + strconv.Itoa(minutes%60) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(minutes/60) + " h"
	default:
		return l.Count("time.days", int64(d/(24*time.Hour)))
	}
}

// fromTo returns a range of durations, with their unit once if they share it: 5 to 6 min.
func (l Lang) fromTo(least, most time.Duration) string {
	from, to := l.span(least), l.span(most)
	if from == to {
		return from
	}
	if number, unit, _ := strings.Cut(from, " "); strings.HasSuffix(to, " "+unit) && strings.Count(to, " ") == 1 {
		from = number
	}
	return l.T("time.from_to", from, to)
}

// The most bytes of a text that are shown.
const (
	mostShown   = 8 << 10 // in full
	lineShown   = 160     // in a table's row
	detailShown = 1000    // in a paragraph, such as what is wrong with a catalogue
	nameShown   = 1024    // of an id or a name; it cuts no id, since these have at most 512
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
