package harness

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// parentOf makes the test binary start a program and wait, so that a test can kill it.
const parentOf = "CHILD_TEST_PARENT_OF"

func TestMain(m *testing.M) {
	if path := os.Getenv(parentOf); path != "" {
		p, err := Start(Command{Path: path, Args: []string{"600"}})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.PID())
		<-p.Done()
	}
	os.Exit(m.Run())
}

func TestNoProgramOutlivesAKilledParent(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	out := newLines()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentOf+"="+sleep)
	parent.Stdout = out
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	orphan := number(t, out.next(t))
	if !running(orphan) {
		t.Fatal("the program does not run")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	gone(t, orphan)
}
