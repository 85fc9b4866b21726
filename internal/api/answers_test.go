package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// TestAnswers plays testdata/answers.txt and refused.txt, each story on a journal of its own: what happens, what is asked for, and
// below it the answer, and what the log says of it. `-update` rewrites the answers. Afterwards the journal is whole.
func TestAnswers(t *testing.T) {
	for _, file := range []string{"testdata/answers.txt", "testdata/refused.txt"} {
		playStories(t, file)
	}
}

func playStories(t *testing.T, file string) {
	var got strings.Builder
	for story := range strings.SplitSeq(testkit.Read(t, file), "\n= ") {
		if got.Len() == 0 {
			got.WriteString(story) // the head
			continue
		}
		title, steps, _ := strings.Cut(story, "\n")
		got.WriteString("\n= " + title + "\n")
		t.Run(title, func(t *testing.T) {
			zoned := func(o *api.Options, _ *guard.Services) { o.Zone = time.FixedZone("America/Sao_Paulo", -3*3600) }
			p := &player{fixture: open(t, zoned), names: map[string]string{}}
			for step := range strings.Lines(steps) {
				if !strings.HasPrefix(step, "\t") {
					got.WriteString(step + p.play(strings.TrimSpace(step)))
				}
			}
			if _, err := audit.Verify(t.Context(), p.Memory, journal.Head{}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	golden.Check(t, file, strings.TrimSuffix(got.String(), "\n")+"\n")
}

// player plays a story.
type player struct {
	*fixture
	names map[string]string // that the story has for ids
	told  int               // lines of the log so far
	was   int64             // the last record at "unchanged"
}

var (
	uuids   = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	asking  = regexp.MustCompile(`^(\w+) ([A-Z]+) (/\S*)(?: ([^=].*?))?(?: => (\w+=.*))?$`)
	defined = regexp.MustCompile(`(\w+)=([\w.]+)`)
	// repeated is a character that stands so many times: x*201.
	repeated = regexp.MustCompile(`(.)\*(\d+)`)
)

func repeat(text string) string {
	return repeated.ReplaceAllStringFunc(text, func(s string) string {
		m := repeated.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[2]) // digits alone
		return strings.Repeat(m[1], n)
	})
}

// fill puts ids in the place of their names, the longest first.
func (p *player) fill(s string) string {
	for _, name := range slices.SortedFunc(maps.Keys(p.names), func(a, b string) int { return len(b) - len(a) }) {
		s = strings.ReplaceAll(s, name, p.names[name])
	}
	return s
}

// hide puts names in the place of ids.
func (p *player) hide(s string) string {
	for _, name := range slices.Sorted(maps.Keys(p.names)) {
		s = strings.ReplaceAll(s, p.names[name], name)
	}
	return uuids.ReplaceAllString(s, "UUID")
}

// play plays a step, and returns what is to be seen of it.
func (p *player) play(step string) string {
	p.t.Helper()
	if m := asking.FindStringSubmatch(step); m != nil {
		return p.ask(m)
	}
	f := append(strings.Fields(step), "", "")
	switch f[0] {
	case "", "#":
	case "dies", "dies-alone": // NAME CLAIM RETRIES ERROR
		retries, _ := strconv.Atoi(f[3])
		die := p.DieWaiting
		if f[0] == "dies-alone" {
			die = p.Die
		}
		p.names[f[1]] = die(decision.DefaultPolicy, f[2], strings.Join(f[4:len(f)-2], " "), retries)
	case "fails": // CLAIM ERROR
		p.Fail(decision.DefaultPolicy, f[1], strings.Join(f[2:len(f)-2], " "), -1)
	case "after":
		d, err := time.ParseDuration(f[1])
		testkit.Must(p.t, err)
		p.Advance(d)
	case "runs": // NAME ERROR
		p.names[f[1]] = p.run(f[2])
	case "refuses": // RUN NUMBER CODE
		n, _ := strconv.ParseInt(f[2], 10, 64)
		testkit.Must(p.t, p.Journal.RefuseBulkItem(p.t.Context(), p.names[f[1]], n, f[3]))
	case "engine":
		p.SetEngineUp(map[string]time.Time{"up": p.Now(), "down": {}}[f[1]])
	case "portal":
		p.portal(f[1])
	case "exports":
		var all strings.Builder
		_, err := audit.Export(p.t.Context(), p.Memory, &all, audit.Selection{}, audit.JSONLines, nil)
		testkit.Must(p.t, err)
		return "\t" + p.hide(strings.ReplaceAll(strings.TrimSpace(all.String()), "\n", "\n\t")) + "\n"
	case "policies":
		p.SetPolicies(decision.Policies{})
	case "policy":
		queue := jobQueue()
		p.SetPolicies(decision.Policies{decision.DefaultPolicy: p.Policies()[decision.DefaultPolicy], queue.Name: queue})
	case "teams": // own is bound to faturamento and another, other and beto to others
		p.Tokens.Teams = map[string]access.Teams{"own": "ti,faturamento", "other": "ti,cadastro", "beto": "cadastro"}
		p.Tokens.Publish(map[string]access.Role{"own": access.Operator, "other": access.Operator, "otto": access.Operator,
			"beto": access.Operator, "vera": access.Viewer, "eva": access.Admin, "ada": access.Admin}, time.Time{})
	case "names": // NAME ID
		p.names[f[1]] = f[2]
	case "unchanged": // since the last time
		if now := p.Memory.End().Record; p.was > 0 && now != p.was {
			p.t.Errorf("%d records were made", now-p.was)
		}
		p.was = p.Memory.End().Record
	case "delivers":
		p.Deliver(true)
	default:
		p.t.Fatalf("unknown step %q", step)
	}
	return ""
}

// within is what stands at a place in JSON, such as items.0.id.
func within(v any, place []string) any {
	for _, name := range place {
		if list, is := v.([]any); is {
			n, _ := strconv.Atoi(name)
			v = list[n]
		} else {
			v = v.(map[string]any)[name]
		}
	}
	return v
}

// ask asks as somebody, remembers of the answer what the step names, and returns it.
func (p *player) ask(m []string) string {
	p.t.Helper()
	root := p.url
	if strings.HasPrefix(m[3], "/api") {
		root = p.root
	}
	a := call{m[2], repeat(p.fill(m[3])), repeat(p.fill(m[4]))}.to(p.t, root, p.as(m[1]))
	for _, name := range defined.FindAllStringSubmatch(m[5], -1) {
		p.names[name[1]] = fmt.Sprint(within(a.body, strings.Split(name[2], ".")))
	}
	said := fmt.Sprintf("\t%d %s\n", a.status, p.hide(strings.TrimSpace(a.text)))
	if code, is := a.body["error"].(string); is && a.status >= http.StatusBadRequest {
		a.refused(p.t, m[0], a.status, code)
		said = fmt.Sprintf("\t%d %s: %s\n", a.status, code, p.hide(fmt.Sprint(a.body["message"])))
	}
	for _, line := range p.lines.All()[p.told:] {
		said += "\tlog: " + p.hide(fmt.Sprint(line.Message, " ", line.ContextMap())) + "\n"
		p.told++
	}
	return said
}
