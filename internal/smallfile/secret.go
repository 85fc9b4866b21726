package smallfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrExposed says that others can read or replace the file of a secret.
var ErrExposed = errors.New("others can reach it")

// exposed holds the permissions that such a file must not have: any for everybody, and writing for its group. The group
// may read, as Kubernetes needs for Secrets in containers that are not root.
const exposed fs.FileMode = 0o027

// ReadSecret is Read for a secret. Its error is an ErrExposed if others can read or replace the file.
func ReadSecret(path string, most int) ([]byte, error) {
	content, mode, err := read(path, most)
	if err != nil {
		return content, err
	}
	if mode = mode.Perm(); mode&exposed != 0 {
		return nil, fmt.Errorf("%w: it has mode %04o, expected 0600; `chmod 600` it (a Kubernetes Secret: defaultMode 0440), "+
			"and replace what is in it if others may have read it", ErrExposed, mode)
	}
	return content, checkFolders(path)
}

// maxLinks is how many links are followed, as in the system.
const maxLinks = 40

// checkFolders refuses a file that others could replace. The file, and each folder and link on its path, must belong to
// this user or root. No folder may be writable by everybody, unless it has the sticky bit, as a Kubernetes Secret's
// has: then nobody can remove another's files.
func checkFolders(path string) error {
	at, rest := "/", path
	if !filepath.IsAbs(path) {
		here, err := os.Getwd()
		if err != nil {
			return Cause(err)
		}
		rest = here + "/" + path
	}
	for links := 0; ; {
		info, err := os.Lstat(at)
		if err != nil {
			return Cause(err)
		}
		if err := checkOwner(at, info); err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(at)
			if links++; err != nil || links > maxLinks {
				return Cause(cmp.Or(err, error(syscall.ELOOP)))
			}
			if at, rest = filepath.Dir(at), to+"/"+rest; filepath.IsAbs(to) {
				at = "/"
			}
		}
		name, more, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/")
		if name == "" {
			return nil
		}
		at, rest = filepath.Join(at, name), more // at has no links, so .. means its parent
	}
}

// checkOwner refuses a file, folder or link that others could replace.
func checkOwner(at string, info fs.FileInfo) error {
	if of, is := info.Sys().(*syscall.Stat_t); is && of.Uid != 0 && int(of.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to the user %d, expected this one (%d) or root; `chown` it, and check what is in "+
			"the file", ErrExposed, at, of.Uid, os.Geteuid())
	}
	if mode := info.Mode(); info.IsDir() && mode&0o002 != 0 && mode&fs.ModeSticky == 0 {
		return fmt.Errorf("%w: it stands in the folder %s, which has mode %04o, so that everybody could put another in its "+
			"place; `chmod o-w` that folder, and check what is in the file", ErrExposed, at, mode.Perm())
	}
	return nil
}
