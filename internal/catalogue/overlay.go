package catalogue

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// builtIn is what a file may extend.
const builtIn = "built-in"

// ruleLists are the keys of a policy's lists of rules.
var ruleLists = []string{"permanent", "transient", "presumedPermanent"}

// extended lays root over the built-in catalogue where it says that it extends that, and otherwise returns it as it is;
// false where nothing more can be said of it.
func (r *reader) extended(root *yaml.Node) (*yaml.Node, bool) {
	i := indexOf(root, "extends")
	if i < 0 {
		return root, true
	}
	key, value := root.Content[i], root.Content[i+1]
	if value.Kind != yaml.ScalarNode || value.Anchor != "" || value.Value != builtIn {
		r.problemAt(value.Line, "extends", describe(value),
			builtIn+", the one catalogue that can be extended, or no such key")
		return nil, false
	}
	root.Content = slices.Delete(root.Content, i, i+2)
	root.Line = key.Line
	r.places["extends"] = place{key.Line, value} // a second one is reported
	r.base = make(map[*yaml.Node]bool)
	base := builtInRoot()
	r.refuseStrangers(root, base)
	uncomment(root)
	root = r.lay(root, base, "")
	r.effective = encode(root)
	return root, true
}

// builtInRoot parses the embedded catalogue.
func builtInRoot() *yaml.Node {
	var doc yaml.Node
	if err := decode(yaml.NewDecoder(bytes.NewReader(defaultYAML)), &doc); err != nil {
		panic(err) // cannot be: a test reads what is embedded
	}
	return doc.Content[0]
}

// encode writes a catalogue as YAML.
func encode(root *yaml.Node) []byte {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil // it holds an alias or the like, which is reported
	}
	return b.Bytes()
}

// lay returns what stands at path: base with all that over says otherwise. It takes both over.
func (r *reader) lay(over, base *yaml.Node, path string) *yaml.Node {
	switch {
	case base.Kind == yaml.MappingNode && over.Kind != base.Kind:
		r.problemAt(over.Line, path, describe(over), "a mapping of what differs")
		r.own(base, over.Line)
		return base
	case over.Kind != base.Kind || over.Anchor != "" || isOtherBackoff(over, base, path):
		return over
	case over.Kind == yaml.MappingNode:
		return r.layMapping(over, base, path)
	case over.Kind == yaml.SequenceNode && isRuleList(path): // rules of the file go before the built-in ones
		r.own(base, over.Line)
		base.Content = slices.Concat(over.Content, base.Content)
		return base
	}
	return over
}

func (r *reader) layMapping(over, base *yaml.Node, path string) *yaml.Node {
	if policy, ok := strings.CutPrefix(path, "policies."); ok && !strings.Contains(policy, ".") {
		replaceRules(over, base)
	}
	var pairs []*yaml.Node
	laid := make(map[int]bool)
	for i := 0; i+1 < len(base.Content); i += 2 {
		key, value := base.Content[i], base.Content[i+1]
		j := indexOf(over, key.Value)
		if j < 0 {
			r.own(key, over.Line)
			r.own(value, over.Line)
			pairs = append(pairs, key, value)
			continue
		}
		laid[j] = true
		key.Line = over.Content[j].Line
		pairs = append(pairs, key, r.lay(over.Content[j+1], value, join(path, key.Value)))
	}
	for j := 0; j+1 < len(over.Content); j += 2 {
		if !laid[j] {
			pairs = append(pairs, over.Content[j], over.Content[j+1])
		}
	}
	base.Content, base.Line = pairs, over.Line
	r.base[base] = true
	return base
}

// own notes that n is the built-in catalogue's. What is wrong with it is so by what the file says on that line.
func (r *reader) own(n *yaml.Node, line int) {
	r.base[n], n.Line = true, line
	for _, part := range n.Content {
		r.own(part, line)
	}
}

// ofBuiltInRule reports whether path lies in a rule of the built-in catalogue. That rules of the file take something
// from one, or come before it, is what they are for.
func (r *reader) ofBuiltInRule(path string) bool {
	if r.base == nil ||
		!slices.ContainsFunc(ruleLists, func(list string) bool { return strings.Contains(path, "."+list+"[") }) {
		return false
	}
	at := r.nearest(path)
	return at.node != nil && r.base[at.node]
}

// isOtherBackoff reports whether over is a backoff of another kind than base, which then says nothing of it.
func isOtherBackoff(over, base *yaml.Node, path string) bool {
	return strings.HasPrefix(path, "policies.") && strings.HasSuffix(path, ".backoff") &&
		slices.ContainsFunc(kinds, func(kind string) bool { return indexOf(over, kind) >= 0 && indexOf(base, kind) < 0 })
}

func isRuleList(path string) bool {
	return slices.Contains(ruleLists, path[strings.LastIndex(path, ".")+1:])
}

// replaceRules takes from the rules of base what rules of over say: those of the same names whole, from the others the
// codes, phrases and the like.
func replaceRules(over, base *yaml.Node) {
	taken := make(map[string]bool)
	eachRule(over, func(rule *yaml.Node) bool {
		if i := indexOf(rule, "name"); i >= 0 {
			taken["name "+rule.Content[i+1].Value] = true
		}
		eachMatcher(rule, func(list string, item *yaml.Node) bool { taken[list+" "+item.Value] = true; return true })
		return true
	})
	eachRule(base, func(rule *yaml.Node) bool {
		i := indexOf(rule, "name")
		return (i < 0 || !taken["name "+rule.Content[i+1].Value]) &&
			eachMatcher(rule, func(list string, item *yaml.Node) bool { return !taken[list+" "+item.Value] })
	})
}

// eachRule calls keep for the rules of a policy, and removes those for which it returns false.
func eachRule(policy *yaml.Node, keep func(rule *yaml.Node) bool) {
	for _, list := range ruleLists {
		if i := indexOf(policy, list); i >= 0 && policy.Content[i+1].Kind == yaml.SequenceNode {
			rules := policy.Content[i+1]
			rules.Content = slices.DeleteFunc(rules.Content, func(rule *yaml.Node) bool { return !keep(rule) })
		}
	}
}

// eachMatcher calls keep for all that a rule matches, and removes that for which it returns false. It reports whether
// anything is left.
func eachMatcher(rule *yaml.Node, keep func(list string, item *yaml.Node) bool) (left bool) {
	for _, l := range matcherLists {
		i := indexOf(rule, l.key)
		if i < 0 || rule.Content[i+1].Kind != yaml.SequenceNode {
			continue
		}
		items := rule.Content[i+1]
		before := len(items.Content)
		items.Content = slices.DeleteFunc(items.Content, func(item *yaml.Node) bool { return !keep(l.key, item) })
		if left = left || len(items.Content) > 0; len(items.Content) == 0 && before > 0 {
			rule.Content = slices.Delete(rule.Content, i, i+2)
		}
	}
	return left
}

// refuseStrangers reports, and leaves out, policies that the built-in catalogue does not have and that are not whole: a
// wrong name, or one that an upgrade took away.
func (r *reader) refuseStrangers(over, base *yaml.Node) {
	i := indexOf(over, "policies")
	if i < 0 || over.Content[i+1].Kind != yaml.MappingNode {
		return
	}
	policies, known := over.Content[i+1], base.Content[indexOf(base, "policies")+1]
	for j := len(policies.Content) - 2; j >= 0; j -= 2 {
		key, value := policies.Content[j], policies.Content[j+1]
		missing := missingKeys(value)
		if indexOf(known, key.Value) >= 0 || len(missing) == 0 || value.Kind != yaml.MappingNode {
			continue
		}
		r.problemAt(key.Line, join("policies", key.Value), "a policy that the built-in catalogue does not have",
			"one of "+oneOf(key.Value, keysOfMapping(known))+", or a whole policy (here without "+
				strings.Join(missing, ", ")+")")
		policies.Content = slices.Delete(policies.Content, j, j+2)
	}
}

// missingKeys lists what a policy lacks that must be there.
func missingKeys(policyNode *yaml.Node) (missing []string) {
	for _, f := range fieldsOf(reflect.TypeFor[policy]()) {
		if !f.optional && indexOf(policyNode, f.name) < 0 {
			missing = append(missing, f.name)
		}
	}
	return missing
}

// refuseIdleTeams reports teams that the built-in catalogue does not have and nothing names: a wrong name, or one that
// an upgrade took away. Who is told by it would never be.
func (b *builder) refuseIdleTeams(doc *document) {
	if b.base == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Teams)) {
		path := join("teams", name)
		if b.named[name] || b.base[b.places[path].node] {
			continue
		}
		known := slices.DeleteFunc(slices.Clone(b.teams),
			func(other string) bool { return !b.base[b.places[join("teams", other)].node] })
		b.problem(path, "a team that the built-in catalogue does not have and no policy names",
			"one of "+oneOf(name, known)+", or one that a policy names")
	}
}

// indexOf returns where the key stands in a mapping's content, its value behind it; -1 where it does not.
func indexOf(n *yaml.Node, key string) int {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

func keysOfMapping(n *yaml.Node) (keys []string) {
	for i := 0; i < len(n.Content); i += 2 {
		keys = append(keys, n.Content[i].Value)
	}
	slices.Sort(keys)
	return keys
}

// uncomment takes the comments of a file away, which need not fit where its values go.
func uncomment(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for _, part := range n.Content {
		uncomment(part)
	}
}
