package api_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// repeated is a character that stands so many times: x*201.
var repeated = regexp.MustCompile(`(.)\*(\d+)`)

func repeat(text string) string {
	return repeated.ReplaceAllStringFunc(text, func(s string) string {
		m := repeated.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[2]) // digits alone
		return strings.Repeat(m[1], n)
	})
}

// TestRefused is everything that the API must refuse, with the exact codes and words; nothing changes by it.
func TestRefused(t *testing.T) {
	c := open(t)
	ids := map[string]string{
		"OPEN": c.permanent("CLM-001-1"), "EXHAUSTED": c.exhausted("CLM-002-1"), "GONE": c.permanent("CLM-003-1"), "GOING": c.permanent("CLM-004-1"),
		"ALONE": c.Die(decision.DefaultPolicy, "CLM-005-1", "DUPLICATE_CLAIM", 2), "NOBODY": anID, "RUN": c.run("INSURANCE_EXPIRED"),
	}
	c.portal(aPortal)
	c.Advance(time.Minute)
	c.post("otto", "/dead-letters/"+ids["GONE"]+"/discard", `{"reason":"x"}`)
	c.post("ada", "/dead-letters/"+ids["GOING"]+"/retry", `{"reason":"x"}`)
	ids["OTHERS"] = c.get("vera", "/dead-letters?state=all&limit=1").body["next"].(string)
	ids["TOKEN"], ids["UNFORCED"] = c.plan(retryAll), c.plan(`"action":"retry","filter":{"reason":"MAX_RETRIES"}`)
	ids["CAUSE"] = c.Item(ids["OPEN"]).Fingerprint
	c.Tokens.Teams = map[string]access.Teams{"beto": "cadastro"}
	c.Tokens.Publish(map[string]access.Role{"vera": access.Viewer, "otto": access.Operator, "ada": access.Admin, "beto": access.Operator}, time.Time{})
	var forth, back []string
	for name, id := range ids {
		forth, back = append(forth, name, id), append(back, id, name)
	}
	fill, hide := strings.NewReplacer(forth...), strings.NewReplacer(back...)

	before := c.Memory.End().Record
	const file = "testdata/refused.txt"
	var got strings.Builder
	for line := range strings.Lines(testkit.Read(t, file)) {
		if strings.HasPrefix(line, "\t") {
			continue // the answer
		}
		got.WriteString(line)
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		if len(f) < 3 || f[0] == "#" {
			continue
		}
		l := call{method: f[1], path: repeat(fill.Replace(f[2]))}
		if len(f) == 4 {
			l.body = repeat(fill.Replace(f[3]))
		}
		a := l.to(t, c.root, c.as(f[0]))
		code, _ := a.body["error"].(string)
		if a.refused(t, line, a.status, code); a.status < http.StatusBadRequest {
			t.Errorf("it is carried out: %s", line)
		}
		fmt.Fprintf(&got, "\t%d %s: %s\n", a.status, code, hide.Replace(fmt.Sprint(a.body["message"])))
	}
	golden.Check(t, file, got.String())
	if n := c.Memory.End().Record; n != before {
		t.Errorf("%d records were made", n-before)
	}
}
