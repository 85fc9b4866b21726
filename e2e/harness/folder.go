package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	folderPrefix = "retry-worker-e2e-"
	ownerLock    = ".owner"
	// youngest a folder without owner is when it is swept: a younger one may be about to be locked.
	youngest = time.Minute
	// removeTries, removePause: what a killed program's helpers still write may come between.
	removeTries = 50
	removePause = 20 * time.Millisecond
)

// Folder is a temporary folder that everybody may enter, so that programs that must not be root can work in it. It belongs to
// this process: when that was killed, the next one to make a folder removes it, with all that still runs in it.
type Folder struct {
	Path string
	lock *os.File // held as long as the folder is used
}

// NewFolder makes a folder and sweeps those whose owners are gone.
func NewFolder(name string) (*Folder, error) {
	parent, err := enterableParent()
	if err != nil {
		return nil, err
	}
	sweep(parent)
	path, err := os.MkdirTemp(parent, folderPrefix+name+"-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for %s: %w", name, err)
	}
	f := &Folder{Path: path}
	if f.lock, err = TryLock(f.Join(ownerLock)); err == nil {
		err = os.Chmod(path, 0o755)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the folder %s: %w", path, err), f.Remove())
	}
	return f, nil
}

// Join is a path in the folder.
func (f *Folder) Join(elements ...string) string {
	return filepath.Join(append([]string{f.Path}, elements...)...)
}

// Remove ends what still runs in the folder, removes it and lets go of it last.
func (f *Folder) Remove() (err error) {
	KillIn(f.Path, 0)
	for range removeTries {
		if err = os.RemoveAll(f.Path); err == nil {
			break
		}
		time.Sleep(removePause)
	}
	return errors.Join(err, f.lock.Close())
}

// sweep removes the folders whose owners are gone.
func sweep(parent string) {
	found, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*", ownerLock))
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < youngest {
			continue
		}
		if lock, err := TryLock(path); lock != nil && err == nil {
			_ = (&Folder{Path: filepath.Dir(path), lock: lock}).Remove() // the next start tries again
		}
	}
}

// enterableParent is the system's temporary folder, or if need be a usual one instead that everybody may enter.
func enterableParent() (string, error) {
	for _, dir := range []string{os.TempDir(), "/var/tmp", "/tmp"} {
		if resolved, err := filepath.EvalSymlinks(dir); err == nil && (Nobody() == nil || Enterable(resolved)) {
			return resolved, nil
		}
	}
	return "", errors.New("no temporary folder can be entered by the user nobody, whom servers run as in place of root")
}

// Enterable reports whether everybody may go through a folder and those above it.
func Enterable(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// TryLock takes the lock on a file, made if need be; nil where another process has it. The system lets go of it when the process
// ends. A child does not inherit it.
func TryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// RunningIn are the processes that work in a folder, by their ids, whoever started them. Only Linux tells.
func RunningIn(dir string) (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range found {
		cwd, err := os.Readlink(link)
		if err != nil || (cwd != dir && !strings.HasPrefix(cwd, dir+"/")) {
			continue
		}
		process := filepath.Dir(link)
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil && !slices.Contains([]string{"Z", "X"}, state(process)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// state of a process, from "4711 (name) S …".
func state(process string) string {
	content, err := os.ReadFile(filepath.Join(process, "stat"))
	if _, after, found := strings.Cut(string(content[max(strings.LastIndex(string(content), ")"), 0):]), ") "); found && err == nil {
		return after[:1]
	}
	return "X"
}

// KillIn kills the processes that work in a folder, but for one, which must not start new ones meanwhile, and returns when none
// of them lives.
func KillIn(dir string, but int) {
	_ = signalIn(dir, but, syscall.SIGKILL, "") // what does not die of it cannot be helped
}

// PauseIn stops the processes that work in a folder in their tracks, and returns when none runs.
func PauseIn(dir string) error { return signalIn(dir, 0, syscall.SIGSTOP, "Tt") }

// ResumeIn lets them go on.
func ResumeIn(dir string) {
	for _, pid := range RunningIn(dir) {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

// settleTime bounds the wait for signals to work.
const settleTime = 20 * time.Second

// signalIn signals the processes that work in a folder, but for one, until all that live are in one of the states.
func signalIn(dir string, but int, s syscall.Signal, states string) error {
	begun := time.Now()
	for quiet := 0; quiet < 2; quiet++ { // the first look may have been before the last new one was made
		for _, pid := range RunningIn(dir) {
			if pid != but && !strings.Contains(states, state("/proc/"+strconv.Itoa(pid))) {
				_ = syscall.Kill(pid, s)
				quiet = -1
			}
		}
		if quiet < 0 {
			time.Sleep(lookEvery)
		}
		if time.Since(begun) > settleTime {
			return fmt.Errorf("the processes in %s do not heed %v", dir, s)
		}
	}
	return nil
}
