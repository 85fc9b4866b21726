package classify

import (
	_ "embed"
	"regexp"
	"strings"
)

//go:embed words.txt
var wordLines string

// lists holds the word lists of words.txt, which explains its own format.
var lists = func() map[string][]string {
	lists := make(map[string][]string)
	for line := range strings.Lines(wordLines) {
		if key, words, ok := strings.Cut(line, ":"); ok && line[0] != '#' {
			for _, word := range strings.Fields(words) {
				lists[key] = append(lists[key], strings.ReplaceAll(word, "_", " "))
			}
		}
	}
	return lists
}()

// set returns a list as a set.
func set(list string) map[string]bool {
	all := make(map[string]bool)
	for _, word := range lists[list] {
		all[word] = true
	}
	return all
}

// patternOf returns a list as a regular expression.
func patternOf(list string) *regexp.Regexp {
	return regexp.MustCompile(`\b(?:` + strings.Join(lists[list], "|") + ")")
}

var (
	knowing, holds, tasks                = patternOf("knowing"), patternOf("holds"), patternOf("tasks")
	requests, momentary                  = patternOf("requests"), patternOf("momentary")
	later, turnedDown                    = patternOf("later"), patternOf("turned down")
	authorised, accessed, otherwise      = patternOf("authorised"), patternOf("accessed"), patternOf("otherwise")
	negators, fillers, quantifiers       = set("negators"), set("fillers"), set("quantifiers")
	alternatives, modals, conditions     = set("alternatives"), set("modals"), set("conditions")
	lacks, possession, agents            = set("lacks"), set("possession"), set("agents")
	prepositions, courtesies             = set("prepositions"), set("courtesies")
	fieldNames, abbreviations            = set("field names"), set("abbreviations")
	statusWords, statusFillers, units    = set("status words"), set("status fillers"), set("units")
	tissElements, tissOpeners            = set("tiss elements"), set("tiss openers")
	tissJoints, tissLists, tissUncounted = set("tiss joints"), set("tiss lists"), set("uncounted")
)
