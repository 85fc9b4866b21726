// Package release holds what is released against what it promises: the same bytes wherever it is built, every
// architecture, a bill of materials, licences that are allowed, and an image whose build steps work.
package release

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// instruction of a Dockerfile, continued lines joined.
type instruction struct {
	// Name in upper case, and what follows it.
	Name, Rest string
	// Stage it stands in, from 0 on.
	Stage int
}

// readDockerfile reads all instructions in order; comments and empty lines are left out.
func readDockerfile(r io.Reader) ([]instruction, error) {
	var all []instruction
	stage, pending := -1, ""
	for lines := bufio.NewScanner(r); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if rest, more := strings.CutSuffix(line, `\`); more {
			pending += rest + " "
			continue
		}
		name, rest, found := strings.Cut(pending+line, " ")
		if !found {
			return nil, fmt.Errorf("%q is no instruction", pending+line)
		}
		if pending = ""; strings.EqualFold(name, "FROM") {
			stage++
		}
		all = append(all, instruction{strings.ToUpper(name), strings.TrimSpace(rest), stage})
	}
	return all, nil
}
