package harness

import (
	"os"
	"os/user"
	"strconv"
	"sync"
	"syscall"
)

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
