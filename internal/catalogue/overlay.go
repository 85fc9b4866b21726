package catalogue

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
)

// ruleLists are the keys of a policy's lists of rules.
var ruleLists = []string{"permanent", "transient", "presumedPermanent"}

// extended merges root into the built-in catalogue if it extends that, and returns other roots as they are. ok is false
// if nothing more can be checked.
func (r *reader) extended(root *yaml.Node) (*yaml.Node, bool) {
	i := indexOf(root, "extends")
	if i < 0 {
		return root, true
	}
	key, value := root.Content[i], root.Content[i+1]
	if value.Kind != yaml.ScalarNode || value.Value != DefaultSource {
		r.problemAt(value.Line, "extends", describe(value),
			DefaultSource+", the one catalogue that can be extended, or no such key")
		return nil, false
	}
	root.Content, root.Line = slices.Delete(root.Content, i, i+2), key.Line
	each(root, func(n *yaml.Node) { n.HeadComment, n.LineComment, n.FootComment = "", "", "" }) // they have no place
	root = r.lay(root, builtInRoot(), "")
	r.effective = encode(root)
	return root, true
}

// builtInRoot parses the embedded catalogue, without line numbers.
func builtInRoot() *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal(defaultYAML, &doc); err != nil {
		panic(err) // cannot be: a test reads what is embedded
	}
	each(&doc, func(n *yaml.Node) { n.Line = 0 })
	return doc.Content[0]
}

// encode writes a catalogue as YAML.
func encode(root *yaml.Node) []byte {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	_ = e.Encode(root) // cannot fail: clean removed what YAML cannot encode
	return b.Bytes()
}

// lay returns the node at path: base, overridden by over. It may change both.
func (r *reader) lay(over, base *yaml.Node, path string) *yaml.Node {
	isRules := slices.Contains(ruleLists, path[strings.LastIndex(path, ".")+1:])
	switch {
	case base.Kind == yaml.MappingNode && over.Kind != base.Kind:
		r.problemAt(over.Line, path, describe(over), "a mapping of what differs")
		return base
	case over.Kind != base.Kind || over.Kind != yaml.MappingNode && !isRules || isOtherBackoff(over, base, path):
		return over
	}
	if isRules { // the file's rules go first
		base.Content = slices.Concat(over.Content, base.Content)
		return base
	}
	if policy, ok := strings.CutPrefix(path, "policies."); ok && !strings.Contains(policy, ".") {
		replaceRules(over, base)
	}
	for j := 0; j+1 < len(over.Content); j += 2 {
		key, value := over.Content[j], over.Content[j+1]
		i := indexOf(base, key.Value)
		if i < 0 {
			base.Content = append(base.Content, key, value)
			continue
		}
		base.Content[i].Line = key.Line
		base.Content[i+1] = r.lay(value, base.Content[i+1], join(path, key.Value))
	}
	return base
}

// isBuiltIn reports whether the node at path, or its nearest parent, comes from the built-in catalogue.
func (r *reader) isBuiltIn(path string) bool {
	n := r.nearest(path).node
	return r.effective != nil && n != nil && n.Line == 0
}

// ofBuiltInRule reports whether path lies in a rule of the built-in catalogue. The file may replace parts of such a
// rule, so problems in it are not reported.
func (r *reader) ofBuiltInRule(path string) bool {
	inRules := func(list string) bool { return strings.Contains(path, "."+list+"[") }
	return r.isBuiltIn(path) && slices.ContainsFunc(ruleLists, inRules)
}

// isOtherBackoff reports whether over is a backoff of another kind than base, and so replaces it whole.
func isOtherBackoff(over, base *yaml.Node, path string) bool {
	return strings.HasPrefix(path, "policies.") && strings.HasSuffix(path, ".backoff") &&
		slices.ContainsFunc(kinds, func(kind string) bool { return indexOf(over, kind) >= 0 && indexOf(base, kind) < 0 })
}

// replaceRules removes from base what over replaces: whole rules of the same name, and from other rules the same codes,
// phrases and the like, with the rule's examples. A code that stays in its list keeps its rank, unless over names one.
func replaceRules(over, base *yaml.Node) {
	type owner struct {
		list string
		rule *yaml.Node
	}
	taken := make(map[string]owner)
	keepRules(over, func(list string, rule *yaml.Node) bool {
		of := owner{list, rule}
		taken["name "+child(rule, "name").Value] = of
		keepItems(rule, func(key, item string) bool { taken[key+" "+item] = of; return true })
		return true
	})
	keepRules(base, func(list string, rule *yaml.Node) bool {
		if name := child(rule, "name").Value; name != "" && taken["name "+name].rule != nil {
			return false
		}
		isWhole := true
		left := keepItems(rule, func(key, item string) bool {
			of, isTaken := taken[key+" "+item]
			rank := indexOf(rule, "rank")
			if isTaken && key == "codes" && of.list == list && rank >= 0 && indexOf(of.rule, "rank") < 0 {
				of.rule.Content = append(of.rule.Content, rule.Content[rank:rank+2]...)
			}
			isWhole = isWhole && !isTaken
			return !isTaken
		})
		if !isWhole {
			remove(rule, "matches")
			remove(rule, "not")
		}
		return left
	})
}

// keepRules removes the policy's rules for which keep returns false.
func keepRules(policy *yaml.Node, keep func(list string, rule *yaml.Node) bool) {
	for _, list := range ruleLists {
		rules := child(policy, list)
		rules.Content = slices.DeleteFunc(rules.Content, func(rule *yaml.Node) bool { return !keep(list, rule) })
	}
}

// keepItems removes the list items of a rule for which keep returns false, and reports whether any is left.
func keepItems(rule *yaml.Node, keep func(key, item string) bool) (left bool) {
	for _, l := range new(classify.Rule).Lists() {
		items := child(rule, l.Key)
		before := len(items.Content)
		items.Content = slices.DeleteFunc(items.Content, func(item *yaml.Node) bool { return !keep(l.Key, item.Value) })
		if left = left || len(items.Content) > 0; len(items.Content) == 0 && before > 0 {
			remove(rule, l.Key)
		}
	}
	return left
}

// remove removes a key from a mapping.
func remove(n *yaml.Node, key string) {
	if i := indexOf(n, key); i >= 0 {
		n.Content = slices.Delete(n.Content, i, i+2)
	}
}

// refuseIdleTeams reports teams that no policy names and the built-in catalogue does not have: a misspelt name, or one
// that an upgrade removed. Such a team would never be notified.
func (b *builder) refuseIdleTeams() {
	isOwn := func(name string) bool { return !b.isBuiltIn(join("teams", name)) }
	known := slices.DeleteFunc(slices.Clone(b.teams), isOwn)
	for _, name := range b.teams {
		if b.effective != nil && isOwn(name) && !b.named[decision.Team(name)] {
			b.problem(join("teams", name), "a team that the built-in catalogue does not have and no policy names",
				"one of "+oneOf(name, known)+", or one that a policy names")
		}
	}
}

// indexOf returns the index of a key in a mapping's content, followed by its value; -1 if it is absent.
func indexOf(n *yaml.Node, key string) int {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// child returns the value of a mapping's key, or an empty node.
func child(n *yaml.Node, key string) *yaml.Node {
	if i := indexOf(n, key); i >= 0 {
		return n.Content[i+1]
	}
	return new(yaml.Node)
}

// each calls do for n and all nodes below it.
func each(n *yaml.Node, do func(*yaml.Node)) {
	do(n)
	for _, part := range n.Content {
		each(part, do)
	}
}
