package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// allowed are licences that ask for no more than being named.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "Unlicense", "Zlib"}

// part is one module in the binary, or Go's own library.
type part struct {
	Path, Version, Sum string
	// Licences are SPDX identifiers, sorted; Texts are the contents of their files.
	Licences []string
	Texts    []string
}

// partsOf returns the parts of a binary, sorted by path, and reads the licence of the project itself. Each part has
// at least one licence, and all are allowed.
func partsOf(info *buildinfo.BuildInfo, project string, own *part) ([]part, error) {
	var paths []string
	for _, m := range info.Deps {
		paths = append(paths, m.Path)
	}
	dirs, err := moduleDirs(project, paths)
	if err != nil {
		return nil, err
	}
	know, err := assets.DefaultClassifier()
	if err != nil {
		return nil, fmt.Errorf("load the texts of the known licences: %w", err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("ask where Go is: %w", err)
	}
	parts := []part{{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	dirs["std"] = strings.TrimSpace(string(root))
	for _, m := range info.Deps {
		parts = append(parts, part{Path: m.Path, Version: m.Version, Sum: m.Sum})
	}
	wrong := []error{own.read(project, know)}
	for i := range parts {
		wrong = append(wrong, parts[i].read(dirs[parts[i].Path], know))
	}
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.Path, b.Path) })
	return parts, errors.Join(wrong...)
}

// moduleDirs returns the folders of the project's modules with these paths.
func moduleDirs(project string, paths []string) (map[string]string, error) {
	list := exec.Command("go", append([]string{"list", "-m", "-f", "{{.Path}} {{.Dir}}"}, paths...)...)
	list.Dir, list.Stderr = project, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the project's modules: %w", err)
	}
	dirs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		dirs[path] = dir
	}
	return dirs, nil
}

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([.-].*)?$`)
	noticeFile  = regexp.MustCompile(`(?i)^notice([.-].*)?$`) // Apache-2.0 §4(d): goes with the binary
)

// thirdParty matches files about other modules, even such as are not in the binary; each of those has its own
// licence.
var thirdParty = regexp.MustCompile(`(?i)3rd|third`)

// read finds the licences in a module's folder.
func (p *part) read(dir string, know *classifier.Classifier) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look for the licence of %s: %w", p.Path, err)
	}
	for _, e := range entries {
		licence := licenceFile.MatchString(e.Name()) && !thirdParty.MatchString(e.Name())
		if e.IsDir() || !licence && !noticeFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return fmt.Errorf("read the licence of %s: %w", p.Path, err)
		}
		p.Texts = append(p.Texts, string(text))
		for _, m := range know.Match(text).Matches {
			if licence && m.MatchType == "License" && !slices.Contains(p.Licences, m.Name) {
				p.Licences = append(p.Licences, m.Name)
			}
		}
	}
	slices.Sort(p.Licences)
	if len(p.Licences) == 0 {
		return fmt.Errorf("%s %s: no licence found, expected a file LICENSE with one of %s", p.Path, p.Version, strings.Join(allowed, ", "))
	}
	for _, l := range p.Licences {
		if !slices.Contains(allowed, l) {
			return fmt.Errorf("%s %s: the licence is %s, expected one of %s", p.Path, p.Version, l, strings.Join(allowed, ", "))
		}
	}
	return nil
}

// notices returns the licences of all parts, first as a list, then in full. A text that several parts share appears
// once, below their names.
func notices(parts []part) []byte {
	var b bytes.Buffer
	b.WriteString("What this program is made of, and under which licences.\n\n")
	var texts []string
	of := map[string][]string{}
	for i := range parts {
		p := &parts[i]
		fmt.Fprintf(&b, "%-56s %-44s %s\n", p.Path, p.Version, strings.Join(p.Licences, " AND "))
		for _, text := range p.Texts {
			text = strings.TrimSpace(text)
			if of[text] == nil {
				texts = append(texts, text)
			}
			of[text] = append(of[text], p.Path+" "+p.Version)
		}
	}
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%[1]s\n%[2]s\n%[1]s\n\n%[3]s\n", strings.Repeat("=", 78), strings.Join(of[text], "\n"), text)
	}
	return b.Bytes()
}
