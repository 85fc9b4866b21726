// Command local shows the worker at work on a real Zeebe on this machine; scripts/run, which is `make run`, starts it.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"retry-worker/e2e/harness/zeebe"
)

// Exit codes, as those of retry-worker.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitKilled = 130 // as a shell reports a Ctrl-C
)

// errAsked is the cause of a stop that somebody asked for.
var errAsked = errors.New("asked to stop")

func main() {
	s := session{screen: newScreen(os.Stdout)}
	flag.StringVar(&s.folder, "folder", "", "for logs and journal; removed at the end, but for the logs after a failure")
	flag.StringVar(&s.version, "zeebe", zeebe.Versions[0], "version of Zeebe: "+strings.Join(zeebe.Versions, " or "))
	flag.IntVar(&s.port, "port", 8095, "of the console; where it is taken, the next that is free")
	owner := flag.Int("owner", os.Getppid(), "`process` whose end ends the run")
	flag.Parse()
	if s.folder == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(exitUsage)
	}
	stop, hard := signals(*owner)
	s.hard = hard
	os.Exit(s.main(stop))
}

// signals returns two contexts: stop ends at the first Ctrl-C, SIGTERM or closed terminal, or when the owner or who
// started this process is gone; hard ends at the second signal.
func signals(owner int) (stop, hard context.Context) {
	stop, stopNow := context.WithCancelCause(context.Background())
	hard, hardNow := context.WithCancel(context.Background())
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	parent, look := os.Getppid(), time.NewTicker(time.Second)
	go func() {
		for owned := true; owned; {
			select {
			case <-asked:
				owned = false
			case <-look.C:
				owned = os.Getppid() == parent && !errors.Is(syscall.Kill(owner, 0), syscall.ESRCH)
			}
		}
		stopNow(errAsked)
		<-asked
		hardNow()
	}()
	return stop, hard
}

// main runs the session until stop ends or something fails, and returns the exit code.
func (s *session) main(stop context.Context) int {
	err := s.run(stop)
	switch {
	case err != nil && !errors.Is(err, errAsked):
		text := strings.ReplaceAll(err.Error(), "\n", " ")
		_ = os.WriteFile(filepath.Join(s.folder, "error"), []byte(text+"\n"), 0o600) // scripts/run keeps the folder then
		s.screen.say("Stopped; the logs are in %s.\n\n%s", s.folder, text)
		return exitFailed
	case s.hard.Err() != nil:
		return exitKilled
	}
	if err := os.RemoveAll(s.folder); err != nil {
		s.screen.say("%v", err)
		return exitFailed
	}
	s.screen.say("Stopped. Nothing is left but what was fetched for the next time.")
	return exitDone
}
