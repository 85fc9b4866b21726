package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Change is one thing that two catalogues do not have alike.
type Change struct {
	// Path of it, such as policies.tiss-submission.maxRetries. A rule goes by its name, or by its codes.
	Path string `json:"path"`
	// Before and After are what stands there; nil where nothing does.
	Before any `json:"before"`
	After  any `json:"after"`
}

// String returns the change in one line.
func (c Change) String() string { return c.Path + ": " + inline(c.Before) + ", now " + inline(c.After) }

// Changes returns what makes after of before, in the order of the paths.
func Changes(before, after *Catalogue) []Change {
	return changesOf("", before.decoded(), after.decoded())
}

// decoded returns the whole catalogue as YAML decodes it.
func (c *Catalogue) decoded() (all any) {
	if err := yaml.Unmarshal(c.effective, &all); err != nil {
		panic(err) // cannot be: it was read before
	}
	return all
}

func changesOf(path string, before, after any) (all []Change) {
	if isRuleList(path) {
		return ruleChanges(path, before, after)
	}
	x, isMap := before.(map[string]any)
	y, areMaps := after.(map[string]any)
	if isMap && areMaps {
		return keyChanges(x, y, func(key string) string { return join(path, key) })
	}
	if inline(before) != inline(after) {
		all = append(all, Change{path, before, after})
	}
	return all
}

func keyChanges(before, after map[string]any, path func(key string) string) (all []Change) {
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		all = append(all, changesOf(path(key), before[key], after[key])...)
	}
	return all
}

// ruleChanges returns those of the rules, and of the order in which the rules that both have are tried.
func ruleChanges(path string, before, after any) []Change {
	x, labelsX := rulesByLabel(before)
	y, labelsY := rulesByLabel(after)
	all := keyChanges(x, y, func(label string) string { return path + "[" + label + "]" })
	labelsX = slices.DeleteFunc(labelsX, func(label any) bool { return y[label.(string)] == nil })
	labelsY = slices.DeleteFunc(labelsY, func(label any) bool { return x[label.(string)] == nil })
	for len(labelsX) > 0 && labelsX[0] == labelsY[0] {
		labelsX, labelsY = labelsX[1:], labelsY[1:]
	}
	for last := len(labelsX) - 1; last >= 0 && labelsX[last] == labelsY[last]; last-- {
		labelsX, labelsY = labelsX[:last], labelsY[:last]
	}
	if len(labelsX) > 0 {
		all = append(all, Change{path + " (order)", labelsX, labelsY})
	}
	return all
}

// rulesByLabel are rules by their names, or their codes where they have none, and these in the order of the rules.
func rulesByLabel(list any) (rules map[string]any, labels []any) {
	rules = make(map[string]any)
	items, _ := list.([]any)
	for _, item := range items {
		rule, _ := item.(map[string]any)
		label := strings.Trim(inline(cmp.Or(rule["name"], rule["codes"])), "[]")
		rules[label], labels = rule, append(labels, label)
	}
	return rules, labels
}

// inline writes a value in one line, as YAML does in braces and brackets.
func inline(value any) string {
	var parts []string
	switch v := value.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, key+": "+inline(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, item := range v {
			parts = append(parts, inline(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default:
		return fmt.Sprint(v)
	}
}
