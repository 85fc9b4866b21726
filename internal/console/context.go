package console

import (
	"slices"
	"strconv"
	"strings"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
)

// money is an amount of hundredths of a real.
func (l Lang) money(cents int64) string {
	return "R$\u00a0" + l.Number(cents/100) + strings.TrimPrefix(l.Decimal(float64(cents%100)/100, 2), "0")
}

// Money is an amount, empty where there is none.
func (l Lang) Money(cents int64) string {
	if cents == 0 {
		return ""
	}
	return l.money(cents)
}

// ContextOf is what is known of a claim, in one line of a list.
func (v *visit) ContextOf(i deadletter.Item) string {
	facts := v.context(i.Subject.Policy, i.Context)
	parts := make([]string, len(facts))
	for n, f := range facts {
		parts[n] = f.Name + " " + f.Value
	}
	return strings.Join(parts, " · ")
}

// context is what is known of a claim, by the names that the catalogue in force has.
func (v *visit) context(policy string, of decision.Context) (facts []fact) {
	var fields []decision.ContextField
	if p := v.catalogue.Policies[policy]; p != nil {
		fields = p.Context
	}
	for i := range of {
		name := of[i].Variable
		if n := slices.IndexFunc(fields, func(f decision.ContextField) bool { return f.Variable == name }); n >= 0 {
			name = fields[n].Label
		}
		facts = append(facts, fact{name, v.contextValue(&of[i])})
	}
	return facts
}

func (v *visit) contextValue(c *decision.ContextValue) string {
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
			return v.shortDay(t) + " " + t.In(v.zone).Format("15:04")
		}
	case decision.ContextText:
	}
	return c.Value
}
