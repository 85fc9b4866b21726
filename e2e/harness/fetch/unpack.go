package fetch

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// Untar unpacks a tar into dir; where strip is set, without the single folder that all is packed in. Nothing is written outside
// dir, though links may lead there.
func Untar(content io.Reader, dir string, strip bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(header.Name, "./")
		if strip {
			_, name, _ = strings.Cut(name, "/")
		}
		if name == "" {
			continue
		}
		if err := unpack(root, path.Clean(name), header, archive); err != nil {
			return err
		}
	}
}

func unpack(root *os.Root, name string, header *tar.Header, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, name)
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, header.FileInfo().Mode().Perm()|0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Close())
	default:
		return fmt.Errorf("%s is neither a file nor a folder", header.Name)
	}
}
