package console

import (
	_ "embed" // texts are part of the program
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/language"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
)

// Lang is a language of the pages, by its BCP 47 tag. The set is closed.
type Lang string

// The languages; Portuguese is given to whoever asks for neither.
const (
	Portuguese Lang = "pt-BR"
	English    Lang = "en"
)

// Langs lists them all.
func Langs() []Lang { return []Lang{Portuguese, English} }

//go:embed texts.yaml
var textsFile []byte

// texts by key and language. They are read when the first is asked for, since most processes show none; that they can
// be is for this package's tests.
var texts = sync.OnceValue(func() (all map[string]map[Lang]string) {
	if err := yaml.Unmarshal(textsFile, &all); err != nil {
		panic("console: " + err.Error())
	}
	return all
})

// T returns the text of a key with its arguments filled in. A test finds keys that do not exist.
func (l Lang) T(key string, args ...any) string {
	s, ok := texts()[key][l]
	if !ok {
		return "[" + key + "]"
	}
	if len(args) == 0 {
		return s
	}
	return fmt.Sprintf(s, args...)
}

// Or returns the text of a key, or fallback where there is none: for names that a catalogue of policies may add.
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

// Number returns n with its thousands apart.
func (l Lang) Number(n int64) string {
	s, sign, separator := strconv.FormatInt(n, 10), "", ","
	if n < 0 {
		sign, s = "−", s[1:]
	}
	if l == Portuguese {
		separator = "."
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + separator + s[i:]
	}
	return sign + s
}

// Decimal returns x with that many decimals.
func (l Lang) Decimal(x float64, decimals int) string {
	return l.point(strconv.FormatFloat(x, 'f', decimals, 64))
}

// short returns x with at most so many decimals.
func (l Lang) short(x float64, decimals int) string {
	s := l.Decimal(x, decimals)
	if strings.ContainsAny(s, ".,") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".,")
	}
	return s
}

// percent returns a ratio in hundredths.
func (l Lang) percent(ratio float64) string { return l.short(100*ratio, 1) + " %" }

// point returns a text with a number in it, with the language's mark for decimals.
func (l Lang) point(number string) string {
	if l == Portuguese {
		return strings.Replace(number, ".", ",", 1)
	}
	return number
}

// langCookie keeps a language that was chosen.
const langCookie = "lang"

// languages are matched by their order in Langs; the first is given where none is.
var languages = language.NewMatcher([]language.Tag{language.BrazilianPortuguese, language.English})

// langOf a request: the one chosen, now (?lang=) or before (cookie), otherwise the browser's.
func langOf(r *http.Request) (l Lang, chosen bool) {
	now := r.URL.Query().Get("lang")
	_, i := language.MatchStrings(languages, now, kept(r, langCookie), r.Header.Get("Accept-Language"))
	return Langs()[i], now != ""
}

// reason in words; its code where it has none. A rule that is an HTTP status has that for one.
func (l Lang) reason(r decision.Reason) string {
	if status, ok := strings.CutPrefix(string(r), "http-"); ok {
		return l.T("reason.http", status)
	}
	return l.Or("reason."+string(r), string(r))
}

// policy by the name people have for it; one of a catalogue's own has the one it was given.
func (l Lang) policy(name string) string { return l.Or("policy."+name, name) }

// retry says which of most retries number n is; one beyond them is extra.
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

// team by the name people have for it; a catalogue's own teams have the one they were given.
func (l Lang) team(t decision.Team) string {
	if t == "" {
		return l.T("team.none")
	}
	return l.Or("team."+string(t), string(t))
}

// Badge is a state as a word with a shape, never by colour alone.
type Badge struct {
	// Tone chooses colour and shape: ok, bad, warn, wait or off.
	Tone string
	Word string
}

// tones of states, by their own types.
var tones = map[any]string{
	journal.DeadLetterOpen: "bad", journal.DeadLetterReprocessing: "wait", journal.DeadLetterDiscarded: "off",
	journal.DeadLetterAccepted:  "ok",
	journal.DeadLetterRecovered: "ok", journal.DeadLetterSuperseded: "off",
	journal.StatusPending: "wait", journal.StatusResending: "wait", journal.StatusFailed: "bad",
	journal.StatusDelivered: "ok", journal.StatusDiscarded: "off",
	journal.DeliveryPending: "wait", journal.DeliveryTaken: "ok", journal.DeliveryNobody: "warn",
	journal.BulkRunning: "wait", journal.BulkPaused: "warn", journal.BulkCancelled: "off",
	journal.BulkDone: "ok", journal.BulkPlanned: "wait", journal.BulkDecided: "wait", journal.BulkTaken: "wait",
	journal.BulkRecovered: "ok", journal.BulkDiscarded: "off", journal.BulkAccepted: "ok", journal.BulkDeadAgain: "bad", journal.BulkNobody: "warn",
	journal.BulkRefused: "warn", journal.BulkSuperseded: "off",
	deadletter.Waiting: "ok", deadletter.Expected: "wait", deadletter.Nobody: "warn",
	decision.Permanent: "bad", decision.Transient: "wait", decision.Unknown: "warn",
	destination.Up: "ok", destination.Down: "bad", destination.Testing: "wait", destination.Ramping: "wait",
}

// badge of a state, which the text of that name says; its own word where there is none.
func (l Lang) badge(name string, state any) Badge {
	word := fmt.Sprint(state)
	return Badge{tones[state], l.Or(name+"."+word, word)}
}

// subjectURL returns a subject's page, with more fields. A tenant is named where it is not the one that everybody has.
func subjectURL(s journal.Subject, more ...field) string {
	if s.Tenant != journal.DefaultTenant {
		more = append(more, field{"tenant", s.Tenant})
	}
	return address("/subjects/"+segment(s.Policy)+"/"+segment(s.ID), more...)
}

// segment returns s as one segment of a path.
func segment(s string) string {
	return strings.ReplaceAll(url.PathEscape(s), "+", "%2B")
}

// Moment is an instant as a page shows it: in words, with the exact one beside it.
type Moment struct {
	// ISO is the instant in UTC, RFC 3339; UTC says the same to people.
	ISO, UTC string
	// Text is what is read: an age, a countdown, or date and time in the hospital's zone.
	Text string
	// Kind tells the script how to keep Text true: ago, in, due, which is in until it is overdue, or at, which stays.
	Kind string
	// Late tells that it is a deadline that has passed.
	Late bool
}

// Set reports whether there is an instant.
func (m Moment) Set() bool { return m.ISO != "" }

func (v *visit) moment(t time.Time, kind, text string) Moment {
	if t.IsZero() {
		return Moment{}
	}
	return Moment{ISO: decision.Instant(t), UTC: t.UTC().Format("2006-01-02 15:04:05") + " UTC", Text: text, Kind: kind}
}

// At returns date and time in the hospital's zone.
func (v *visit) At(t time.Time) Moment { return v.moment(t, "at", v.clock(t)) }

// Ago returns how long ago t was.
func (v *visit) Ago(t time.Time) Moment { return v.moment(t, "ago", v.ago(v.now.Sub(t))) }

// For returns how long it has been so.
func (v *visit) For(t time.Time) Moment {
	if v.now.Sub(t) < time.Minute {
		return v.Ago(t)
	}
	return v.moment(t, "for", v.T("time.for", v.span(v.now.Sub(t))))
}

// In returns how long it is until t.
func (v *visit) In(t time.Time) Moment { return v.moment(t, "in", v.in(t.Sub(v.now))) }

// Due returns how long it is until a deadline, or for how long it is overdue.
func (v *visit) Due(t time.Time) Moment {
	m := v.moment(t, "due", v.in(t.Sub(v.now)))
	if v.Past(t) && m.Set() {
		m.Text, m.Late = v.T("time.overdue", v.span(v.now.Sub(t))), true
	}
	return m
}

// Expires says of a deadline on which day it is, or for how long it is overdue.
func (v *visit) Expires(t time.Time) Moment {
	day := func(t time.Time) string { return t.In(v.zone).Format(time.DateOnly) }
	switch {
	case v.Past(t):
		return v.Due(t)
	case day(t) == day(v.now):
		return v.moment(t, "at", v.T("due.on.today"))
	case day(t) == day(v.now.In(v.zone).AddDate(0, 0, 1)):
		return v.moment(t, "at", v.T("due.on.tomorrow"))
	}
	return v.moment(t, "at", v.T("due.on", v.shortDay(t)))
}

// Past reports whether t has come.
func (v *visit) Past(t time.Time) bool { return !t.After(v.now) }

// clock returns date and time to the second, without the date where it is today's.
func (v *visit) clock(t time.Time) string {
	local, today := t.In(v.zone), v.now.In(v.zone)
	if local.Year() == today.Year() && local.YearDay() == today.YearDay() {
		return v.T("time.today", local.Format("15:04:05"))
	}
	return v.when(t)
}

// Day returns the date in the hospital's zone.
func (v *visit) Day(t time.Time) string {
	return v.format(t, "02/01/2006", "2 Jan 2006")
}

// shortDay returns the date without its year.
func (v *visit) shortDay(t time.Time) string { return v.format(t, "02/01", "2 Jan") }

// format tells t in the hospital's zone, by the layout of the language.
func (v *visit) format(t time.Time, portuguese, english string) string {
	if v.Lang == Portuguese {
		english = portuguese
	}
	return t.In(v.zone).Format(english)
}

// ago returns an age in words; console.js keeps it true by the same rules.
func (l Lang) ago(d time.Duration) string {
	if d < time.Minute {
		return l.T("time.just_now")
	}
	return l.T("time.ago", l.span(d))
}

// in returns a countdown in words: with seconds below ten minutes.
func (l Lang) in(d time.Duration) string {
	if d = d.Round(time.Second); d <= 0 {
		return l.T("time.now")
	}
	return l.T("time.in", l.fine(d))
}

// fine returns a span with its seconds, too, below ten minutes; d is whole seconds.
func (l Lang) fine(d time.Duration) string {
	if d >= time.Minute && d < 10*time.Minute && d%time.Minute > 0 {
		return l.span(d) + " " + l.span(d%time.Minute)
	}
	return l.span(d)
}

// span returns a length of time by its largest units: 38 s, 14 min, 5 h 10 min, 3 days.
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

// fromTo returns a range of lengths of time, with the unit once where that is enough: 5 to 6 min.
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
