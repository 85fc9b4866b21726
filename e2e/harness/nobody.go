package harness

import (
	"errors"
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
	credential := &syscall.Credential{Uid: noUser, Gid: noUser}
	if u, err := user.Lookup("nobody"); err == nil {
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errors.Join(errUID, errGID) == nil {
			credential.Uid, credential.Gid = uint32(uid), uint32(gid)
		}
	}
	return credential
})
