package api_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"retry-worker/e2e/harness"
	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// description is the OpenAPI file, ready to hold answers against.
type description struct {
	operations map[string]*operation // by method and path: GET /api/v1/causes
	codes      []string              // every error's code

	mu       sync.Mutex
	produced map[string]bool // a status, and an operation with one: GET /api/v1/causes 200
	said     map[string]bool // the codes of errors
}

// operation is one of them.
type operation struct {
	path    *regexp.Regexp
	request *jsonschema.Schema         // nil: none
	answers map[int]*jsonschema.Schema // by status; 0 is every other
}

var load = sync.OnceValues(func() (*description, error) {
	d, err := loadDescription()
	if err == nil && flag.Lookup("test.run").Value.String() == "" {
		harness.AtEnd(d.allSaid) // every test runs
	}
	return d, err
})

func described(t *testing.T) *description {
	t.Helper()
	d, err := load()
	testkit.Must(t, err)
	return d
}

const resource = "mem:///openapi.json"

func loadDescription() (*description, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(api.Document()))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource(resource, doc); err != nil {
		return nil, err
	}
	d := &description{operations: map[string]*operation{}, produced: map[string]bool{}, said: map[string]bool{}}
	for _, code := range at(doc, "components", "schemas", "Error", "properties", "error", "enum").([]any) {
		d.codes = append(d.codes, code.(string))
	}
	for path, item := range at(doc, "paths").(map[string]any) {
		for method := range item.(map[string]any) {
			o, err := loadOperation(compiler, doc, path, method)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			d.operations[strings.ToUpper(method)+" "+path] = o
		}
	}
	return d, nil
}

var placeholder = regexp.MustCompile(`\\\{\w+\\\}`)

func loadOperation(compiler *jsonschema.Compiler, doc any, path, method string) (*operation, error) {
	o := &operation{answers: map[int]*jsonschema.Schema{}}
	o.path = regexp.MustCompile("^" + placeholder.ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`) + "$")
	compile := func(at ...string) (*jsonschema.Schema, error) {
		return compiler.Compile(resource + "#" + pointer(append(at, "content", "application/json", "schema")))
	}
	var err error
	if at(doc, "paths", path, method, "requestBody") != nil {
		if o.request, err = compile("paths", path, method, "requestBody"); err != nil {
			return nil, err
		}
	}
	for text, answer := range at(doc, "paths", path, method, "responses").(map[string]any) {
		where := []string{"paths", path, method, "responses", text}
		if ref, is := answer.(map[string]any)["$ref"].(string); is {
			where = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
		}
		status, _ := strconv.Atoi(text) // 0 of "default"
		if o.answers[status], err = compile(where...); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// at is what stands at a place of a document; nil where there is nothing.
func at(doc any, names ...string) any {
	for _, name := range names {
		m, _ := doc.(map[string]any)
		doc = m[name]
	}
	return doc
}

func pointer(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name)))
	}
	return b.String()
}

// find is the operation of a request; empty where none is described.
func (d *description) find(method, path string) (string, *operation) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	found := ""
	for name, o := range d.operations {
		// One that is spelled out goes before another's {id}.
		if strings.HasPrefix(name, method+" ") && o.path.MatchString(path) && (found == "" || strings.Count(name, "{") < strings.Count(found, "{")) {
			found = name
		}
	}
	return found, d.operations[found]
}

// hold checks that an answer is one of those described, and that what was carried out was asked for as described.
func (d *description) hold(t *testing.T, r *http.Request, body string, a *answer) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if code, is := a.body["error"].(string); is && a.status >= http.StatusBadRequest {
		d.said[code] = true
		if !slices.Contains(d.codes, code) {
			t.Errorf("%s %s: the code %s is not described", r.Method, r.URL, code)
		}
	}
	name, o := d.find(r.Method, r.URL.EscapedPath())
	if o == nil && !strings.Contains(r.URL.EscapedPath(), "%2F") {
		name, o = d.find(r.Method, r.URL.Path) // /%61pi is /api
	}
	if o == nil {
		if strings.HasPrefix(r.URL.Path, "/api/") && a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed && a.status != http.StatusUnauthorized && a.status != http.StatusUnsupportedMediaType {
			t.Errorf("%s %s is not described, but answered with %d", r.Method, r.URL, a.status)
		}
		return
	}
	schema := cmp.Or(o.answers[a.status], o.answers[0])
	if schema == o.answers[0] && api.Refusals()[strconv.Itoa(a.status)] == "" {
		t.Errorf("%s: %d is not described: %s", name, a.status, short(a.text))
	}
	d.produced[fmt.Sprintf("%s %d", name, a.status)], d.produced[strconv.Itoa(a.status)] = true, true
	if r.Method == http.MethodHead {
		return
	}
	holds(t, name, schema, a.text)
	if (a.status == http.StatusOK || a.status == http.StatusCreated) && o.request != nil {
		holds(t, name+" (its request)", o.request, body)
	}
}

func holds(t *testing.T, what string, schema *jsonschema.Schema, text string) {
	t.Helper()
	if schema == nil {
		return
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%s is not as described: %.2000v\n%s", what, err, short(text))
	}
}

func TestMain(m *testing.M) { harness.Main(m) }

// allSaid is an error for codes of errors and statuses that are described and that no test had the API say, and for operations that
// none had it carry out.
func (d *description) allSaid() error {
	left := slices.DeleteFunc(slices.Clone(d.codes), func(c string) bool { return d.said[c] })
	for name := range d.operations {
		if !d.produced[name+" 200"] {
			left = append(left, name)
		}
	}
	for status := range api.Refusals() {
		if !d.produced[status] {
			left = append(left, status)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%v are described, but no test had the API say or do them", left)
	}
	return nil
}

// TestDescription: the description is served, and is the one that was agreed on; what changes in it changes a contract.
func TestDescription(t *testing.T) {
	a := get(t, starting(t)+"/openapi.json")
	var served, want any
	testkit.Must(t, json.Unmarshal([]byte(a.text), &served))
	testkit.Must(t, json.Unmarshal(api.Document(), &want))
	golden.Check(t, "testdata/openapi.json", outline(want, 3, "\n")+"\n")
	if !reflect.DeepEqual(served, want) {
		t.Error("another description is served")
	}
}

// outline is JSON with a line for each value at that depth: an operation, or a schema.
func outline(v any, depth int, indent string) string {
	m, nested := v.(map[string]any)
	if depth == 0 || !nested {
		text, _ := json.Marshal(v)
		return string(text)
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, indent+" "+outline(name, 0, "")+": "+outline(m[name], depth-1, indent+" "))
	}
	return "{" + strings.Join(all, ",") + indent + "}"
}

// TestReference: docs/http-api.md is made of the description.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The HTTP API\n\n" + wrapped("For whoever writes a program that asks the worker, or decides by it. It is served where the "+
		"console is (`RETRY_WORKER_HTTP_ADDR`, 127.0.0.1:8095). `GET "+api.Root+"/openapi.json` describes it as OpenAPI 3.1, with what each "+
		"request is answered with; this page is made of that description. "+
		"Addresses begin with `"+api.Root+"`. [console.md](console.md#who-may-do-what) says what each role may.\n\n"+api.About) +
		"\n\n```sh\ncurl -s 'http://127.0.0.1:8095" + api.Root + "/dead-letters?state=open&sort=deadline'\n```\n")
	shared := sharedFields()
	b.WriteString("\n## Fields of several requests\n\n" + wrapped("GET takes its fields in the query, the others in the body, but for those "+
		"that the address shows. The role is viewer where no other is named.") + "\n")
	b.WriteString("\n| field | value | |\n| --- | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, kindOf(shared[name]), shared[name].Doc)
	}
	tag := ""
	for _, o := range api.Description() {
		if o.Tag != tag {
			tag = o.Tag
			fmt.Fprintf(&b, "\n## %s%s\n", strings.ToUpper(tag[:1]), tag[1:])
		}
		says := o.Summary + "."
		if o.Detail != "" {
			says += " " + o.Detail
		}
		if least := o.Action.Least(); least != access.Viewer {
			says += fmt.Sprintf(" Role %s.", least)
		}
		path := o.Path
		var known []string
		own := ""
		for _, f := range o.Fields {
			if f.In == "query" && o.Method != http.MethodGet {
				path += "?" + f.Name + "="
			}
			switch {
			case f.In == "path":
			case shared[f.Name] != nil && saysOf(f) == saysOf(shared[f.Name]):
				known = append(known, "`"+f.Name+"`")
			default:
				own += saysOf(f)
			}
		}
		if known != nil {
			says += " Fields: " + strings.Join(known, ", ") + "."
		}
		fmt.Fprintf(&b, "\n### %s %s\n\n%s\n", o.Method, path, wrapped(says))
		if own != "" {
			b.WriteString("\n" + own)
		}
	}
	b.WriteString("\n## What is refused\n\n" + wrapped("The `default` answer of each request in the description has every status and "+
		"its codes. After a 429 wait as `Retry-After` says; after a 503 reading again is safe, and of a change look first whether it "+
		"was recorded.") + "\n")
	golden.Check(t, "../../docs/http-api.md", b.String())
}

// sharedFields returns, by name, the fields that several requests take alike; of those with one name the most usual.
func sharedFields() map[string]*api.Field {
	shared, times := map[string]*api.Field{}, map[string]int{}
	for _, o := range api.Description() {
		for _, f := range o.Fields {
			if f.In == "path" || f.Doc == "" && kindOf(f) == "string" {
				continue // nothing is said of it
			}
			times[saysOf(f)]++
			if best := shared[f.Name]; times[saysOf(f)] > 1 && (best == nil || times[saysOf(f)] > times[saysOf(best)]) {
				shared[f.Name] = f
			}
		}
	}
	return shared
}

// saysOf returns what the page says of a field of one request.
func saysOf(f *api.Field) string {
	return strings.TrimSuffix(fmt.Sprintf("- `%s` (%s): %s", f.Name, kindOf(f), f.Doc), ": ") + "\n"
}

// kindOf says what a field takes.
func kindOf(f *api.Field) string {
	kind := cmp.Or(map[string]string{"date-time": "instant"}[f.Format], f.Type)
	if len(f.Enum) > 0 && len(f.Enum) < 12 {
		kind = "`" + strings.Join(f.Enum, "`, `") + "`"
	}
	switch {
	case f.Required && f.In != "path":
		kind += ", required"
	case f.Default != "":
		kind += ", by default `" + f.Default + "`"
	}
	return kind
}

// wrapped breaks lines at 120 characters.
func wrapped(text string) string {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		width := 0
		for _, word := range strings.Fields(paragraph) {
			switch n := len([]rune(word)); {
			case width == 0:
				width = n
			case width+1+n > 120:
				b.WriteByte('\n')
				width = n
			default:
				b.WriteByte(' ')
				width += 1 + n
			}
			b.WriteString(word)
		}
	}
	return b.String()
}

// TestEveryFieldsCodeIsDescribed: whatever is wrong with a field is refused by a code of the closed set.
func TestEveryFieldsCodeIsDescribed(t *testing.T) {
	for _, o := range api.Description() {
		for _, f := range o.Fields {
			if f.In != "path" && !f.Any && !slices.Contains(described(t).codes, f.Code()) {
				t.Errorf("%s %s: the code %s of the field %s is not described", o.Method, o.Path, f.Code(), f.Name)
			}
		}
	}
}

// TestEveryFieldIsExplained: a field of a request or an answer says what it means.
func TestEveryFieldIsExplained(t *testing.T) {
	var doc any
	testkit.Must(t, json.Unmarshal(api.Document(), &doc))
	var walk func(place string, v any)
	walk = func(place string, v any) {
		switch v := v.(type) {
		case []any:
			for i := range v {
				walk(fmt.Sprint(place, " ", i), v[i])
			}
		case map[string]any:
			fields, _ := v["properties"].(map[string]any)
			for name, of := range fields {
				if says, _ := of.(map[string]any)["description"].(string); says == "" && !strings.Contains(place, " counts") {
					t.Errorf("%s: nothing is said of %s", place, name)
				}
			}
			if _, is := v["in"]; is && v["schema"] != nil && at(v, "schema", "description") == nil {
				t.Errorf("%s: nothing is said of %s", place, v["name"])
			}
			for name := range v {
				walk(place+" "+name, v[name])
			}
		}
	}
	walk("", doc)
}
