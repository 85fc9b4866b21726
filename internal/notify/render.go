package notify

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"strings"
	texttemplate "text/template"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/kpi"
)

// Words are the texts of the console's pages in the language of those who are told.
type Words interface {
	// Or is the text of a key, such as reason.TIMEOUT or kpi.success_rate; fallback where there is none.
	Or(key, fallback string) string
	Number(n int64) string
	Decimal(x float64, decimals int) string
}

var (
	//go:embed templates
	files embed.FS
	plain = texttemplate.Must(texttemplate.ParseFS(files, "templates/notice.txt"))
	page  = template.Must(template.ParseFS(files, "templates/notice.html"))
)

// renderer makes e-mail of notices, in Brazilian Portuguese.
type renderer struct {
	words Words
	zone  *time.Location
}

// view is a notice in words. Everything in it is cleaned, and one line.
type view struct {
	Subject, Title, Lead string
	// Causes of Heading, and how many dead letters have another.
	Heading string
	Causes  []causeView
	Other   string
	Open    string
	Ages    []string
	Taught  []string
	KPIs    []policyView
	URL     string
	Made    string
}

type causeView struct{ Count, Reason, Policy, Pattern, Hint, Oldest string }

type policyView struct {
	Name string
	KPIs []kpiView
}

type kpiView struct{ Name, Value, Window, Goals string }

// parts returns the plain text and the page.
func (r *renderer) parts(v *view) (text, html string, err error) {
	var t, h bytes.Buffer
	if err := plain.Execute(&t, v); err != nil {
		return "", "", err
	}
	if err := page.Execute(&h, v); err != nil {
		return "", "", err
	}
	return t.String(), h.String(), nil
}

const maxWord = 400

// view of a notice, which came out of the outbox: it is cleaned once more.
func (r *renderer) view(n *Notice) *view {
	team := r.named("team", n.Data.Team)
	v := &view{URL: n.Data.URL, Made: r.time(n.Timestamp), Open: r.open(&n.Data.Open)}
	switch n.Type {
	case TypeNew:
		v.news(r, n, team)
	case TypeDown, TypeUp:
		v.outage(r, n, team)
	default:
		v.digest(r, n, team)
	}
	return v
}

func subject(team, what string) string { return "[retry-worker] " + team + ": " + what }

func (v *view) news(r *renderer, n *Notice, team string) {
	news := cmp.Or(n.Data.New, &Summary{})
	came := r.count(news.Count, "nova pendência", "novas pendências")
	v.Subject = subject(team, came+", "+r.words.Number(n.Data.Open.Count)+" em aberto")
	v.Title = "Equipe " + team + ": " + came + r.worth(news.Amount)
	v.Lead = "O sistema não tenta mais estas falhas sozinho; alguém da equipe precisa decidir."
	v.Heading = "Causas das novas pendências"
	v.causes(r, news)
}

func (v *view) digest(r *renderer, n *Notice, team string) {
	what := "resumo diário de " + day(n.Data.Day)
	if isMonday(n.Data.Day) {
		what += ", com a semana"
	}
	v.Subject = subject(team, what+", "+r.words.Number(n.Data.Open.Count)+" em aberto")
	v.Title = "Equipe " + team + ": " + what
	v.Lead = "Nada em aberto."
	if n.Data.Open.Count > 0 {
		v.Lead = "O que aguarda uma decisão da equipe, por causa e por tempo."
	}
	if d := n.Data.Due; d != nil {
		v.Lead += " " + r.count(d.Count, "vence", "vencem") + " até " + r.time(d.Until) + r.worth(d.Amount) +
			"; depois do prazo, só com um novo prazo ou com autorização de quem decide."
	}
	v.Heading = "Causas do que está em aberto"
	v.causes(r, &n.Data.Open)
	if a := n.Data.Ages; a != nil && n.Data.Open.Count > 0 {
		v.Ages = []string{"até 24 horas: " + r.words.Number(a.Day), "de 1 a 7 dias: " + r.words.Number(a.Week),
			"mais de 7 dias: " + r.words.Number(a.Older)}
	}
	for i := range n.Data.Taught {
		v.Taught = append(v.Taught, r.taught(&n.Data.Taught[i]))
	}
	for i := range n.Data.KPIs {
		k := &n.Data.KPIs[i]
		if policy := r.named("policy", k.Policy); len(v.KPIs) == 0 || v.KPIs[len(v.KPIs)-1].Name != policy {
			v.KPIs = append(v.KPIs, policyView{Name: policy})
		}
		p := &v.KPIs[len(v.KPIs)-1]
		p.KPIs = append(p.KPIs, r.kpi(k))
	}
}

// taught says what was taught of a cause, and when.
func (r *renderer) taught(t *Taught) string {
	what := "passa sozinha: tentar de novo"
	if t.Classification == string(decision.Permanent) {
		what = "não repetir"
	}
	text := r.named("reason", t.Reason) + ", política " + r.named("policy", t.Policy) + ": " + what + ", desde " + r.time(t.At)
	if t.Pattern != "" {
		text += "; erro: " + clean(t.Pattern, maxWord)
	}
	return text
}

// day as it is written in Brazil.
func day(iso string) string {
	t, err := time.Parse(time.DateOnly, iso)
	if err != nil {
		return clean(iso, maxWord)
	}
	return t.Format("02/01/2006")
}

func (v *view) causes(r *renderer, s *Summary) {
	for i := range s.Top {
		c := &s.Top[i]
		v.Causes = append(v.Causes,
			causeView{Count: r.words.Number(c.Count), Reason: r.named("reason", c.Reason) + r.worth(c.Amount),
				Policy: r.named("policy", c.Policy), Pattern: clean(c.Pattern, maxWord), Hint: clean(c.Hint, maxWord), Oldest: r.time(c.Oldest)})
	}
	if s.OtherCount > 0 {
		v.Other = r.count(s.OtherCount, "pendência", "pendências") + " de outras causas"
	}
}

// named returns what people call a team, a policy or a reason; what has no such name keeps its own.
func (r *renderer) named(kind, name string) string {
	name = clean(name, maxWord)
	return r.words.Or(kind+"."+name, name)
}

// open says how many are open in all.
func (r *renderer) open(s *Summary) string {
	if s.Count == 0 {
		return "Em aberto, ao todo: nenhuma."
	}
	text := "Em aberto, ao todo: " + r.words.Number(s.Count) + r.worth(s.Amount) + "."
	if s.Oldest != nil {
		text += " A mais antiga é de " + r.time(*s.Oldest) + "."
	}
	return text
}

// worth is an amount behind a number; empty where there is none.
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

// time where the teams live.
func (r *renderer) time(rfc3339 string) string {
	t, err := time.Parse(time.RFC3339, rfc3339)
	if err != nil {
		return "-"
	}
	return t.In(r.zone).Format("02/01/2006 15:04")
}

func (r *renderer) kpi(k *kpi.KPI) kpiView {
	v := kpiView{Name: r.words.Or("kpi."+k.Name, k.Name), Value: "sem dados", Window: "7 dias"}
	if k.Window <= kpi.Daily.Hours() {
		v.Window = "24 h"
	}
	if k.Value == nil {
		return v
	}
	v.Value = r.quantity(k.Unit, *k.Value)
	var goals []string
	for i := range k.Goals {
		goals = append(goals, r.goal(k.Unit, &k.Goals[i]))
	}
	v.Goals = strings.Join(goals, "; ")
	return v
}

func (r *renderer) goal(unit string, g *kpi.Goal) string {
	limit := g.Compare + " " + r.quantity(unit, g.Limit) + " (" + string(g.Rule) + ")"
	switch held := g.Holds != nil && *g.Holds; {
	case g.Kind == kpi.Alert && held:
		return "ALERTA " + limit
	case g.Kind == kpi.Alert:
		return "sem alerta " + limit
	case held:
		return "na meta " + limit
	default:
		return "FORA DA META " + limit
	}
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
