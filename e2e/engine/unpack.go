package engine

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// unpack puts the content of a .tar.gz into dir, without the single folder that it is packed in.
// Nothing is written outside dir.
func unpack(ctx context.Context, file, dir string, r *reporter) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		r.total.Store(info.Size())
	}
	zipped, err := gzip.NewReader(&counted{ctx, f, r})
	if err != nil {
		return fmt.Errorf("unpack %s: %w", file, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	defer root.Close()
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = unpackEntry(root, header, archive)
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", file, err)
		}
	}
}

func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	_, name, _ := strings.Cut(strings.TrimPrefix(header.Name, "./"), "/")
	if name == "" {
		return nil
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeReg:
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		return write(root, name, header.FileInfo().Mode().Perm()|0o600, content)
	default:
		return fmt.Errorf("%s is neither a file nor a folder", header.Name)
	}
}

func write(root *os.Root, name string, mode os.FileMode, content io.Reader) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// counted reads until the context ends, and tells the reporter how much.
type counted struct {
	ctx  context.Context
	from io.Reader
	r    *reporter
}

func (c *counted) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.from.Read(b)
	c.r.bytes.Add(int64(n))
	return n, err
}
