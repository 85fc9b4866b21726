package notify

import (
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"strings"
	texttemplate "text/template"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Words are the texts of the console's pages in the language of those who are told.
type Words interface {
	// Or is the text of a key, such as reason.TIMEOUT or kpi.success_rate; fallback where there is none.
	Or(key, fallback string) string
	Number(n int64) string
	Decimal(x float64, decimals int) string
	// Advice says what came of the retries of a cause where they hardly help, and what is to be done about it.
	Advice(learnt journal.Prospects) string
}

//go:embed templates
var files embed.FS

// renderer makes e-mail of notices, in Brazilian Portuguese: templates/sentences.txt holds the words, notice.txt and
// notice.html what stands where. A notice came out of the outbox: what is in it is cleaned once more.
type renderer struct {
	words Words
	zone  *time.Location
	plain *texttemplate.Template
	page  *template.Template
}

func newRenderer(words Words, zone *time.Location) *renderer {
	r := &renderer{words: words, zone: zone}
	funcs := texttemplate.FuncMap{
		"say": r.say, "clean": func(text string) string { return clean(text, maxWord) },
		"named": r.named, "number": words.Number, "count": r.count, "worth": r.worth,
		"time": r.time, "instant": instant, "day": day, "monday": isMonday, "quantity": r.quantity,
		"holds": func(is *bool) bool { return is != nil && *is },
		"came":  func(n *Notice) *Summary { return cmp.Or(n.Data.New, &Summary{}) }, "causes": causesOf,
		"advice": func(a Advised) string {
			return words.Advice(journal.Prospects{Recovered: a.Recovered, Lost: a.Closed - a.Recovered})
		},
		"outage": func(n *Notice) *Outage { return cmp.Or(n.Data.Outage, &Outage{}) },
	}
	r.plain = texttemplate.Must(texttemplate.New("").Funcs(funcs).ParseFS(files, "templates/*.txt"))
	r.page = template.Must(template.New("").Funcs(funcs).ParseFS(files, "templates/notice.html"))
	return r
}

// render returns a notice's subject, plain text and page.
func (r *renderer) render(n *Notice) (subject, text, page string, err error) {
	var t, p strings.Builder
	if subject, err = r.say("subject", n); err != nil {
		return "", "", "", err
	}
	if err := r.plain.ExecuteTemplate(&t, "notice.txt", n); err != nil {
		return "", "", "", err
	}
	err = r.page.ExecuteTemplate(&p, "notice.html", n)
	return subject, t.String(), p.String(), err
}

// say returns a sentence of sentences.txt, in one line.
func (r *renderer) say(sentence string, about any) (string, error) {
	var text strings.Builder
	err := r.plain.ExecuteTemplate(&text, sentence, about)
	return strings.Join(strings.Fields(text.String()), " "), err
}

// causesOf returns the dead letters whose causes a notice lists; nil where it is about no dead letters.
func causesOf(n *Notice) *Summary {
	switch n.Type {
	case TypeNew:
		return cmp.Or(n.Data.New, &Summary{})
	case TypeDown, TypeUp, TypeCauses:
		return nil
	default:
		return &n.Data.Open
	}
}

// maxWord is the bytes of a text that is shown.
const maxWord = 400

// named returns what people call a team, a policy or a reason; what has no such name keeps its own.
func (r *renderer) named(kind, name string) string {
	name = clean(name, maxWord)
	return r.words.Or(kind+"."+name, name)
}

// worth returns an amount as it stands behind a number; empty where there is none.
func (r *renderer) worth(amount string) string {
	cents, ok := (&decision.ContextValue{Type: decision.ContextMoney, Value: amount}).Cents()
	if !ok {
		return ""
	}
	return fmt.Sprintf(", R$ %s,%02d", r.words.Number(cents/100), cents%100)
}

func (r *renderer) count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return r.words.Number(n) + " " + many
}

// time returns an instant as it is where the teams live.
func (r *renderer) time(rfc3339 string) string {
	t, err := time.Parse(time.RFC3339, rfc3339)
	if err != nil {
		return "-"
	}
	return t.In(r.zone).Format("02/01/2006 15:04")
}

// day returns one as it is written in Brazil.
func day(iso string) string {
	t, err := time.Parse(time.DateOnly, iso)
	if err != nil {
		return clean(iso, maxWord)
	}
	return t.Format("02/01/2006")
}

func (r *renderer) quantity(unit string, x float64) string {
	switch unit {
	case "ratio":
		return r.words.Decimal(x*100, 1) + " %"
	case "minutes":
		return r.words.Decimal(x, 1) + " min"
	case "seconds":
		return r.words.Decimal(x, 3) + " s"
	default:
		return r.words.Decimal(x, 2)
	}
}
