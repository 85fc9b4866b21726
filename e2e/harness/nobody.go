package harness

import (
	"os"
	"os/user"
	"strconv"
	"sync"
	"syscall"
)

// noUser is nobody's number where the system does not know the name.
const noUser = 65534

// Nobody is whom a program that must not be root runs as, where this process is root; nil where it is not.
var Nobody = sync.OnceValue(func() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return &syscall.Credential{Uid: noUser, Gid: noUser}
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32) // numbers on every system that this runs on
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
})

// GiveToNobody makes a file or folder nobody's, where this process is root.
func GiveToNobody(path string) error {
	if u := Nobody(); u != nil {
		return os.Chown(path, int(u.Uid), int(u.Gid))
	}
	return nil
}
