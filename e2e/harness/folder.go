package harness

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Folder is a temporary folder that every user may enter, so that programs that must not be root can work in it.
type Folder struct{ Path string }

// NewFolder makes a folder; name is a part of its name.
func NewFolder(name string) (*Folder, error) {
	parent, err := enterableParent()
	if err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(parent, "retry-worker-e2e-"+name+"-")
	if err == nil {
		err = os.Chmod(path, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("make a folder for %s: %w", name, err)
	}
	return &Folder{path}, nil
}

// Join returns a path in the folder.
func (f *Folder) Join(elements ...string) string {
	return filepath.Join(append([]string{f.Path}, elements...)...)
}

// Remove kills what still runs in the folder, and removes it.
func (f *Folder) Remove() (err error) {
	KillIn(f.Path, 0)
	for range 50 { // a killed program's helpers may still write
		if err = os.RemoveAll(f.Path); err == nil {
			break
		}
		time.Sleep(lookEvery)
	}
	return err
}

// enterableParent returns the system's temporary folder or, if not every user may enter that, another usual one.
func enterableParent() (string, error) {
	for _, dir := range []string{os.TempDir(), "/var/tmp", "/tmp"} {
		if resolved, err := filepath.EvalSymlinks(dir); err == nil && (Nobody() == nil || enterable(resolved)) {
			return resolved, nil
		}
	}
	return "", errors.New("no temporary folder can be entered by the user nobody, whom servers run as in place of root")
}

// enterable reports whether every user may enter a folder and those above it.
func enterable(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// RunningIn returns the ids of the processes that work in a folder, whoever started them. It works on Linux only.
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

// state returns the state of a process, the S of "4711 (name) S …".
func state(process string) string {
	content, err := os.ReadFile(filepath.Join(process, "stat"))
	if _, after, found := strings.Cut(string(content[max(strings.LastIndex(string(content), ")"), 0):]), ") "); found && err == nil {
		return after[:1]
	}
	return "X"
}

// KillIn kills the processes that work in a folder, except one, which must not start new ones meanwhile, and returns
// when they are dead.
func KillIn(dir string, but int) {
	_ = signalIn(dir, but, syscall.SIGKILL, "") // what survives cannot be helped
}

// PauseIn freezes the processes that work in a folder, and returns when none runs.
func PauseIn(dir string) error { return signalIn(dir, 0, syscall.SIGSTOP, "Tt") }

// ResumeIn ends PauseIn.
func ResumeIn(dir string) {
	for _, pid := range RunningIn(dir) {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

// settleTime bounds the wait for signals to work.
const settleTime = 20 * time.Second

// signalIn signals the processes that work in a folder, except one, until all that live are in one of the states.
func signalIn(dir string, but int, s syscall.Signal, states string) error {
	begun := time.Now()
	for quiet := 0; quiet < 2; quiet++ { // the first look may have missed a new one
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

// noUser is the id of nobody if the system does not know the name.
const noUser = 65534

// Nobody returns the user for programs that must not be root, if this process is root; otherwise nil.
var Nobody = sync.OnceValue(func() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return &syscall.Credential{Uid: noUser, Gid: noUser}
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32) // a number on every system that this runs on
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
})

// GiveToNobody makes nobody the owner of a file or folder, if this process is root.
func GiveToNobody(path string) error {
	if u := Nobody(); u != nil {
		return os.Chown(path, int(u.Uid), int(u.Gid))
	}
	return nil
}
