package postgres

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// enterable is the folder of the server's commands in a place that its user can get to. A fetched one
// may be in root's home, where nobody can: then the server's folder has a copy.
func (d *dataDir) enterable(i Install) (bin string, err error) {
	closed := barrier(i.Bin)
	if closed == "" {
		return i.Bin, nil
	}
	if i.home == "" {
		return "", fmt.Errorf("the user nobody, whom it runs as in place of root, cannot enter %s", closed)
	}
	inside, err := filepath.Rel(i.home, i.Bin)
	if err != nil {
		return "", err
	}
	program := filepath.Join(d.path, "program")
	if err := os.RemoveAll(program); err != nil { // of another version, or half made
		return "", err
	}
	if err := copyTree(i.home, program); err != nil {
		return "", fmt.Errorf("copy %s to %s: %w", i.home, program, err)
	}
	return filepath.Join(program, inside), nil
}

// copyTree makes hard links where the file system allows, which takes a moment, and else copies.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, inside)
		switch {
		case e.IsDir():
			return os.Mkdir(target, 0o755)
		case e.Type()&fs.ModeSymlink != 0:
			return copyLink(path, target)
		case os.Link(path, target) == nil:
			return nil
		default:
			return copyFile(path, target)
		}
	})
}

func copyLink(from, to string) error {
	name, err := os.Readlink(from)
	if err != nil {
		return err
	}
	return os.Symlink(name, to)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
