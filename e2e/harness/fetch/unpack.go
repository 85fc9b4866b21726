package fetch

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Layout is how a tar archive becomes a folder.
type Layout struct {
	Strip bool // leave out the single folder that all is packed in
	Links bool // symbolic links are made; else they are an error
}

// GunzipTar unpacks a .tar.gz into dir. Nothing is written outside dir, nor do links lead there.
func GunzipTar(ctx context.Context, file, dir string, layout Layout, r *Reporter) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		r.Expect(info.Size())
	}
	zipped, err := gzip.NewReader(r.Read(ctx, f))
	if err != nil {
		return err
	}
	return Untar(zipped, dir, layout)
}

// Untar unpacks a tar into dir. Nothing is written outside dir, nor do links lead there.
func Untar(content io.Reader, dir string, layout Layout) error {
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
		if err == nil {
			err = layout.entry(root, header, archive)
		}
		if err != nil {
			return err
		}
	}
}

func (l Layout) entry(root *os.Root, header *tar.Header, content io.Reader) error {
	name := strings.TrimPrefix(header.Name, "./")
	if l.Strip {
		_, name, _ = strings.Cut(name, "/")
	}
	if name == "" {
		return nil
	}
	if header.Typeflag == tar.TypeDir {
		return root.MkdirAll(strings.TrimSuffix(name, "/"), 0o755)
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch {
	case header.Typeflag == tar.TypeReg:
		return write(root, name, header.FileInfo().Mode().Perm()|0o600, content)
	case header.Typeflag == tar.TypeSymlink && l.Links:
		return link(root, name, header.Linkname)
	default:
		return fmt.Errorf("%s is neither a file nor a folder", header.Name)
	}
}

func link(root *os.Root, name, target string) error {
	if path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target)) {
		return fmt.Errorf("the link %s leads outside, to %s", name, target)
	}
	return root.Symlink(target, name)
}

func write(root *os.Root, name string, mode os.FileMode, content io.Reader) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// Expect says of how many bytes the step is.
func (r *Reporter) Expect(bytes int64) { r.total.Store(bytes) }

// Read is from, until the context ends; what is read of it counts as progress.
func (r *Reporter) Read(ctx context.Context, from io.Reader) io.Reader { return &counted{ctx, from, r} }

// counted reads until the context ends, and tells the reporter how much.
type counted struct {
	ctx  context.Context
	from io.Reader
	r    *Reporter
}

func (c *counted) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.from.Read(b)
	c.r.bytes.Add(int64(n))
	return n, err
}
