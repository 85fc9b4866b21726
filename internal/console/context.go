package console

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// money returns an amount in reais, given in hundredths.
func (l Lang) money(cents int64) string {
	return "R$\u00a0" + l.Number(cents/100) + strings.TrimPrefix(l.Decimal(float64(cents%100)/100, 2), "0")
}

// Money returns an amount in reais, or nothing for zero.
func (l Lang) Money(cents int64) string {
	if cents == 0 {
		return ""
	}
	return l.money(cents)
}

// shared reports whether several claims may have a value, so that it can be searched for. A placeholder such as [NAME]
// stands for many people.
func shared(c decision.ContextValue) bool {
	return (c.Type == decision.ContextText || c.Type == decision.ContextNumber) && !strings.HasPrefix(c.Value, "[")
}

// OtherContext returns a context without its amount and deadline, which every page shows by themselves.
func (v *visit) OtherContext(of decision.Context) decision.Context {
	amount := slices.IndexFunc(of, func(c decision.ContextValue) bool { _, ok := c.Cents(); return ok })
	other := decision.Context{}
	for i, c := range of {
		if i != amount && c.Variable != decision.DeadlineVariable {
			other = append(other, c)
		}
	}
	return other
}

// ContextLabel returns the label of a policy's variable, of any policy's if policy is empty. Without a label it returns
// the variable.
func (v *visit) ContextLabel(policy, variable string) string {
	for _, f := range v.contextFields(policy) {
		if f.Variable == variable {
			return v.Says(f.Label)
		}
	}
	return variable
}

// contextFields returns the context fields of a policy, of all if policy is empty, each variable once.
func (v *visit) contextFields(policy string) (fields []decision.ContextField) {
	for _, name := range v.Catalogue.Policies.Names() {
		for _, f := range v.Catalogue.Policies[name].Context {
			same := func(k decision.ContextField) bool { return k.Variable == f.Variable }
			if (policy == "" || policy == name) && !slices.ContainsFunc(fields, same) {
				fields = append(fields, f)
			}
		}
	}
	return fields
}

// contextQuery returns a request's filter by context (journal.DeadLetterFilter), from one field or from the form's two.
func contextQuery(q url.Values) string {
	if field, value := plain(q.Get("field"), maxQueryBytes), plain(q.Get("value"), maxQueryBytes); field != "" && value != "" {
		return field + "=" + value
	}
	return plain(q.Get("context"), 2*maxQueryBytes)
}

// contextFilter returns the part of the filter form that asks for a context value. Without any context there are no
// Fields.
func (v *visit) contextFilter(f *journal.DeadLetterFilter) view {
	variable, value, _ := strings.Cut(f.Context, "=")
	names := []string{variable}
	for _, field := range v.contextFields(f.Policy) {
		if field.Type == decision.ContextText || field.Type == decision.ContextNumber {
			names = append(names, field.Variable)
		}
	}
	label := func(name string) string { return v.ContextLabel(f.Policy, name) }
	return view{"Fields": options(names, variable, label), "Value": value}
}

func (v *visit) ContextValue(c *decision.ContextValue) string {
	switch c.Type {
	case decision.ContextMoney:
		if cents, ok := c.Cents(); ok {
			return v.money(cents)
		}
	case decision.ContextNumber:
		if x, err := strconv.ParseFloat(c.Value, 64); err == nil {
			_, fraction, _ := strings.Cut(c.Value, ".")
			return v.Decimal(x, len(fraction))
		}
	case decision.ContextTime:
		if t, ok := c.Time(); ok {
			return v.ShortDay(t) + " " + t.In(v.zone).Format("15:04")
		}
	case decision.ContextText:
	}
	return c.Value
}

// otherFields returns a policy's context fields without the amount and the deadline, which have their own columns.
func (v *visit) otherFields(policy string) []decision.ContextField {
	fields := v.contextFields(policy)
	if i := slices.IndexFunc(fields, func(f decision.ContextField) bool { return f.Type == decision.ContextMoney }); i >= 0 {
		fields = slices.Delete(fields, i, i+1)
	}
	return slices.DeleteFunc(fields, func(f decision.ContextField) bool { return f.Variable == decision.DeadlineVariable })
}
