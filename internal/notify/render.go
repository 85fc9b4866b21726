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

// Words are the texts of the console's pages in the receivers' language.
type Words interface {
	// Or returns the text of a key, such as reason.TIMEOUT or kpi.success_rate; fallback if there is none.
	Or(key, fallback string) string
	Number(n int64) string
	Decimal(x float64, decimals int) string
	// Advice says how the retries of a cause ended, if they hardly help, and what to do about it.
	Advice(learnt journal.Prospects) string
}

//go:embed templates
var files embed.FS

// renderer makes e-mail from notices, in Brazilian Portuguese. templates/sentences.txt holds the words, notice.txt
// and notice.html the layout. Texts are cleaned once more, since a notice comes from the outbox.
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
		"time": r.time, "day": day, "monday": isMonday, "quantity": r.quantity,
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

// render returns a notice's subject, plain text and HTML page.
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

// say returns a sentence of sentences.txt, on one line.
func (r *renderer) say(sentence string, about any) (string, error) {
	var text strings.Builder
	err := r.plain.ExecuteTemplate(&text, sentence, about)
	return strings.Join(strings.Fields(text.String()), " "), err
}

// causesOf returns the dead letters whose causes a notice lists; nil if it lists none.
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

// maxWord bounds the bytes of a text that is shown.
const maxWord = 400

// named returns what people call a team, a policy or a reason; its own name if they call it nothing else.
func (r *renderer) named(kind, name string) string {
	name = clean(name, maxWord)
	return r.words.Or(kind+"."+name, name)
}

// worth returns an amount in the form that follows a number; empty if there is none.
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

// time returns an instant in the teams' time zone.
func (r *renderer) time(t time.Time) string { return t.In(r.zone).Format("02/01/2006 15:04") }

// day returns a day as it is written in Brazil.
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
	case "claims":
		return r.words.Decimal(x, 0)
	case "seconds":
		return r.words.Decimal(x, 3) + " s"
	default:
		return r.words.Decimal(x, 2)
	}
}
