package server

import (
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/engine"
)

const model = `<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0">
	<process id="P" isExecutable="true"><startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="t"/>
	<serviceTask id="t"><extensionElements><z:taskDefinition type="work"/></extensionElements></serviceTask></process></definitions>`

// open starts a server on a folder, to be closed with the test.
func open(t *testing.T, folder string) *Server {
	t.Helper()
	s, err := Open(Options{Data: folder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// create starts an instance and returns its key.
func create(t *testing.T, s *Server) int64 {
	t.Helper()
	i, _, err := s.create(t.Context(), engine.Create{ProcessID: "P", Version: engine.Latest}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return i.Key
}

func runs(t *testing.T, s *Server, key int64) bool {
	t.Helper()
	err := s.do(t.Context(), "MODIFY", engine.Touch{Key: key}, nil)
	return err == nil
}

// written returns the log of two instances, with its lines.
func written(t *testing.T) (content []byte, lines []string, keys [2]int64) {
	t.Helper()
	folder := t.TempDir()
	s := open(t, folder)
	if _, _, _, err := s.deploy(t.Context(), []engine.Resource{{Name: "p.bpmn", Content: model}}, ""); err != nil {
		t.Fatal(err)
	}
	keys = [2]int64{create(t, s), create(t, s)}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(folder, "engine.log"))
	if err != nil {
		t.Fatal(err)
	}
	return content, strings.SplitAfter(string(content), "\n"), keys
}

func folderWith(t *testing.T, content string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "engine.log"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestTornLog cuts the last command's line at each of its bytes: that command is gone, the others are there, and what comes
// after is kept.
func TestTornLog(t *testing.T) {
	content, lines, keys := written(t)
	last := len(lines[len(lines)-2])
	for cut := 1; cut <= last; cut += max(1, last/40) {
		folder := folderWith(t, string(content[:len(content)-cut]))
		s := open(t, folder)
		if !runs(t, s, keys[0]) || runs(t, s, keys[1]) {
			t.Errorf("cut by %d bytes: the first instance runs %v, the second %v", cut, runs(t, s, keys[0]), runs(t, s, keys[1]))
		}
		key := create(t, s)
		_ = s.Close()
		if again := open(t, folder); !runs(t, again, key) {
			t.Errorf("cut by %d bytes: what came after is gone", cut)
		}
	}
}

// TestUnusableLog: what cannot be a log's torn end is refused in one line, and left as it is.
func TestUnusableLog(t *testing.T) {
	content, lines, _ := written(t)
	damaged := strings.Replace(string(content), lines[2][20:30], "??????????", 1)
	another := lines[0]
	for _, line := range lines[1 : len(lines)-1] {
		body := strings.ReplaceAll(line[checksumLength:len(line)-1], "serviceTask", "userTask")
		another += fmt.Sprintf("%08x %s\n", crc32.Checksum([]byte(body), castagnoli), body)
	}
	for content, says := range map[string]string{
		damaged: "line 3 is damaged, and others follow it",
		another: `line 2: another version took the model of the process "P"`,
		strings.Replace(string(content), "log 1", "log 2", 1): "another version's",
		"something else\n": "another version's, or no engine's log",
		"no line at all":   "another version's, or no engine's log",
	} {
		folder := folderWith(t, content)
		_, err := Open(Options{Data: folder})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.30q…: %v, expected one line with %q", content, err, says)
		}
		if now, _ := os.ReadFile(filepath.Join(folder, "engine.log")); string(now) != content {
			t.Errorf("%.30q…: the file was changed", content)
		}
	}
	folder := t.TempDir()
	open(t, folder)
	if _, err := Open(Options{Data: folder}); err == nil || !strings.Contains(err.Error(), "in use by another engine") {
		t.Errorf("a second engine on the folder: %v", err)
	}
	if _, err := Open(Options{Data: "/proc/none"}); err == nil || !strings.Contains(err.Error(), "make the engine's data folder") {
		t.Errorf("a folder that cannot be made: %v", err)
	}
	if _, err := Open(Options{Shape: "8.7"}); err == nil || !strings.Contains(err.Error(), "expected 8.6 or 8.8") {
		t.Errorf("an unknown shape: %v", err)
	}
}

// TestTornHeader: an engine that was killed as it made its log begins anew.
func TestTornHeader(t *testing.T) {
	for _, content := range []string{"", header[:5]} {
		s := open(t, folderWith(t, content))
		if _, _, _, err := s.deploy(t.Context(), []engine.Resource{{Name: "p.bpmn", Content: model}}, ""); err != nil {
			t.Error(err)
		}
	}
}

// TestInvalidUTF8: no variable holds what gRPC cannot send and the log cannot keep: every poll for its job would fail.
func TestInvalidUTF8(t *testing.T) {
	s := open(t, t.TempDir())
	if _, _, _, err := s.deploy(t.Context(), []engine.Resource{{Name: "p.bpmn", Content: model}}, ""); err != nil {
		t.Fatal(err)
	}
	body := strings.NewReader("{\"processDefinitionId\":\"P\",\"variables\":{\"a\xff\":\"\xfe\"}}")
	answer := httptest.NewRecorder()
	s.REST().ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/v2/process-instances", body))
	jobs, err := s.activate(t.Context(), engine.Activate{Type: "work", Timeout: time.Minute, Max: 1, Tenants: []string{engine.DefaultTenant}}, nil, 0)
	if answer.Code != http.StatusOK || err != nil || len(jobs) != 1 || jobs[0].Variables != "{\"a\ufffd\":\"\ufffd\"}" {
		t.Errorf("answered %d; the jobs are %+v (%v)", answer.Code, jobs, err)
	}
}
