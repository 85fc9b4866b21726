package bpmn

import (
	"strings"
	"testing"
	"testing/fstest"

	"retry-worker/internal/testkit"
)

const wrapped = `<d:definitions xmlns:d="http://www.omg.org/spec/BPMN/20100524/MODEL">%</d:definitions>`

func TestReadRefusesWhatIsNoModel(t *testing.T) {
	for name, c := range map[string]struct{ content, says string }{
		"no XML":             {"SUB_06", "XML"},
		"another document":   {`<definitions><process id="A" isExecutable="true"/></definitions>`, "expected BPMN 2.0's definitions"},
		"no process":         {strings.Replace(wrapped, "%", "", 1), "expected exactly one"},
		"not executable":     {strings.Replace(wrapped, "%", `<d:process id="A"/>`, 1), "expected exactly one"},
		"without an id":      {strings.Replace(wrapped, "%", `<d:process isExecutable="true"/>`, 1), "expected exactly one"},
		"two that could run": {strings.Replace(wrapped, "%", `<d:process id="A" isExecutable="true"/><d:process id="B" isExecutable="true"/>`, 1), `["A" "B"]`},
	} {
		t.Run(name, func(t *testing.T) {
			models, err := read(fstest.MapFS{"broken.bpmn": {Data: []byte(c.content)}})
			if err == nil {
				t.Fatalf("read gave %v, expected an error", models)
			}
			if !strings.Contains(err.Error(), "broken.bpmn") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %q, expected it to name broken.bpmn and to say %q", err, c.says)
			}
		})
	}
}

func TestReadTakesEveryModelInTheOrderOfTheirNames(t *testing.T) {
	model := func(id string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(strings.Replace(wrapped, "%",
			`<d:process id="OTHER"/><d:process id="`+id+`" isExecutable="true"/>`, 1))}
	}
	models, err := read(fstest.MapFS{"z.bpmn": model("Z"), "a.bpmn": model("A"), "readme.txt": {}, "m.bpmn": model("M")})
	testkit.Must(t, err)
	var got []string
	for _, m := range models {
		got = append(got, m.Name+"="+m.ProcessID)
	}
	if want := "a.bpmn=A m.bpmn=M z.bpmn=Z"; strings.Join(got, " ") != want {
		t.Errorf("models %v, expected %s", got, want)
	}
}
