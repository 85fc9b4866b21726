package golden

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Stories runs a subtest for each file of a folder whose name ends in .txt, named without that. It fails if there is none.
func Stories(t *testing.T, folder string, play func(t *testing.T, file string)) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories in %s: %v", folder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { play(t, file) })
	}
}

// Story plays a file of blocks: a command and, behind a line of ----, its output up to an empty line, if it has any. Lines that
// begin with # are comments. play returns a command's output, every line ended. An output that differs fails the test; `go test
// -update` writes it into the file.
func Story(t *testing.T, file string, play func(command string) (output string)) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		command := lines[i]
		if got.WriteString(command + "\n"); command == "" || strings.HasPrefix(command, "#") {
			continue
		}
		want := ""
		if i+1 < len(lines) && lines[i+1] == "----" {
			for i += 2; i < len(lines) && lines[i] != ""; i++ {
				want += lines[i] + "\n"
			}
		}
		output := play(command)
		if output != want && !*update {
			t.Errorf("%s:%d: %s\n--- is\n%s--- should be\n%s", file, i+1, command, output, want)
		}
		if output != "" {
			got.WriteString("----\n" + output + "\n")
		}
	}
	if *update {
		all := strings.TrimRight(strings.ReplaceAll(got.String(), "\n\n\n", "\n\n"), "\n") + "\n"
		if err := os.WriteFile(file, []byte(all), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Arguments are the words of a command: name=value, and the others apart.
type Arguments struct {
	Named map[string]string
	Words map[string]bool
	First string // of the words
}

// Parse splits a command at spaces; a value may stand in quotes.
func Parse(text string) (*Arguments, error) {
	a := &Arguments{Named: map[string]string{}, Words: map[string]bool{}}
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		var word string
		if i := strings.IndexAny(text, `" `); i >= 0 && text[i] == '"' {
			quoted, err := strconv.QuotedPrefix(text[i:])
			if err != nil {
				return nil, errors.New("a quote does not end")
			}
			value, _ := strconv.Unquote(quoted)
			word, text = text[:i]+value, text[i+len(quoted):]
		} else {
			word, text, _ = strings.Cut(text, " ")
		}
		if name, value, ok := strings.Cut(word, "="); ok {
			a.Named[name] = value
		} else if a.Words[word] = true; a.First == "" {
			a.First = word
		}
	}
	return a, nil
}

// Number returns the number that a name has; 0 where it is not given.
func (a *Arguments) Number(name string) int64 {
	n, _ := strconv.ParseInt(a.Named[name], 10, 64)
	return n
}

// Play carries out a command by the function of its first word.
func Play(command string, verbs map[string]func(*Arguments) (string, error)) (output string) {
	verb, rest, _ := strings.Cut(command, " ")
	a, err := Parse(rest)
	play := verbs[verb]
	if err == nil && play == nil {
		err = fmt.Errorf("no such command as %s", verb)
	}
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	if output, err = play(a); err != nil {
		output += "refused: " + err.Error() + "\n"
	}
	return output
}

// Pass waits for a time in a bubble of testing/synctest, and until whatever else wakes at its last instant is done.
func Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Wait is the command of stories that has its first argument pass.
func Wait(a *Arguments) (string, error) {
	d, err := time.ParseDuration(a.First)
	Pass(d)
	return "", err
}
