package postgres

import "golang.org/x/sys/unix"

// freeSegment removes a segment of System V shared memory that no process has; the key tells that the id
// is not another's by now.
func freeSegment(key, id int) {
	var segment unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &segment); err != nil {
		return
	}
	if int(segment.Perm.Key) == key && segment.Nattch == 0 {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) // it is 56 bytes
	}
}
