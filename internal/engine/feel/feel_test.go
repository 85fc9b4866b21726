package feel_test

import (
	"strings"
	"testing"

	"retry-worker/internal/engine/feel"
)

// variables of the tests.
var variables = map[string]feel.Raw{
	"retryCount": "2", "big": "9007199254740993", "name": `"Ana"`, "yes": "true", "nothing": "null", "price": "1234.50",
	"claim": `{"id":"CLM-1","patient":{"plan":"A"}}`, "list": `[{"n":1},{"n":2}]`, "last_name": `"Sá"`, "exponent": "1e999999999",
}

func lookup(name string) (feel.Raw, bool) {
	v, there := variables[name]
	return v, there
}

func TestEval(t *testing.T) {
	for expression, want := range map[string]feel.Raw{
		"null": "null", "true": "true", `"text"`: `"text"`, "7": "7", "1.50": "1.5", "-3": "-3", "missing": "null",
		"big": "9007199254740993", "price": "1234.50", "big + 1": "9007199254740994", "1 / 4": "0.25", "1 / 0": "null",
		"1 / 3": "0.3333333333333333333333333333333333", "2 + 3 * 4": "14", "(2 + 3) * 4": "20", "10 - 4 - 3": "3", "- -2": "2",
		"1 - 0." + strings.Repeat("9", 40): "0", "0." + strings.Repeat("9", 40): "1",
		`"a" + "b"`: `"ab"`, `"a" + 1`: "null", `"a" * 2`: "null", "nothing + 1": "null", "exponent + 1": "null",
		"claim.id": `"CLM-1"`, "claim.patient.plan": `"A"`, "claim.none.plan": "null", "name.length": "null", "list.n": "[1,2]",
		"retryCount = 2": "true", "retryCount = 2.0": "true", `retryCount = "2"`: "null", "retryCount != 3": "true", "missing = null": "true",
		"name = null": "false", "retryCount > 1": "true", "retryCount <= 2": "true", `"a" < "b"`: "true", "missing > 0": "null",
		`name > 1`: "null", "yes = true": "true", `claim.patient = {plan: "A"}`: "true", "list = [{n: 1}, {n: 2}]": "true", "[1, 2] = [2, 1]": "false",
		"true and missing": "null", "false and missing": "false", "true or missing": "true", "missing or false": "null", "false or false": "false",
		"not(yes)": "false", "not(missing)": "null", "not(name)": "null",
		`if retryCount > 1 then "many" else "few"`: `"many"`, `if missing then 1 else 2`: "2",
		"(if missing = null then 0 else missing) > 0 or name = \"Ana\"": "true",
		`{"a b": 1, c: [true, null]}`:                                   `{"a b":1,"c":[true,null]}`, "{}": "{}", "[]": "[]", "last_name": `"Sá"`, `"quote \" \u00e9 \n"`: `"quote \" é \n"`,
		"ifs": "null", "a=b": "true", "retryCount>=2 and retryCount<3": "true",
	} {
		e, err := feel.Parse(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
		} else if got := e.Eval(lookup); got != want {
			t.Errorf("%s is %s, expected %s", expression, got, want)
		}
	}
}

// TestRefused: what is not known is refused, with the place where it stands.
func TestRefused(t *testing.T) {
	for expression, says := range map[string]string{
		"": "found the end", "1 +": "found the end", "now()": `found "(" at character 4`, "date and time(x)": `found "("`,
		`contains("a", "b")`: `found "("`, "list[1]": `found "["`, "for x in list return x": `found "for"`, "some x in list satisfies x": `found "some"`,
		"x between 1 and 2": `found "between"`, "x in [1,2]": `found "in"`, "[1..2]": `found ".2"`, "2 ** 3": `found "**"`, `@"2026-03-01"`: `found "@"`,
		"x instance of number": `found "instance"`, "function(x) x": `found "function"`, `"open`: "not terminated", "(1": `expected ")"`, "0x1F": "no decimal number",
		"{a 1}": `expected ":"`, "if x then 1": `expected "else"`, "1 < 2 < 3": `found "<"`, `"\x"`: "invalid char escape", "claim.": "found the end",
		strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300): "nested more than", strings.Repeat("1", 500): "at most 400 digits",
		strings.Repeat(" 1 +", 20_000) + " 1": "bytes",
	} {
		if _, err := feel.Parse(expression); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60s: %v, expected %q in it", expression, err, says)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"(if retryCount = null then 0 else retryCount) > 0 or x = \"y\"", "{a: [1, -2.5], \"b\": not(c.d)}", "\"\\u00e9\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if e, err := feel.Parse(text); err == nil {
			if value := e.Eval(lookup); value == "" {
				t.Errorf("%q has no value", text)
			}
		}
	})
}
