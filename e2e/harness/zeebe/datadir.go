package zeebe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"retry-worker/e2e/harness/fetch"
)

// dataDir is a broker's folder: data, what Java unpacks, and the settings of its log.
type dataDir struct {
	path string
	lock *os.File // held while the folder is used
	keep bool     // it is the caller's
}

const (
	temporaryPrefix = "retry-worker-zeebe-"
	ownerLock       = "owner.lock"
)

// logSettings put each event on one line of the standard output and nowhere else.
const logSettings = `<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="ERROR" shutdownHook="disable">
  <Appenders>
    <Console name="Console" target="SYSTEM_OUT">
      <PatternLayout pattern="%d{HH:mm:ss.SSS} %level %logger{1} - %msg%n"/>
    </Console>
  </Appenders>
  <Loggers>
    <Root level="info"><AppenderRef ref="Console"/></Root>
  </Loggers>
</Configuration>
`

// openDataDir makes a broker's folder; an empty path is a temporary one, removed by close. What killed
// processes left of that kind is removed first.
func openDataDir(path string) (d *dataDir, err error) {
	d = &dataDir{keep: path != ""}
	if d.keep {
		d.path, err = filepath.Abs(path)
	} else {
		sweep(os.TempDir())
		d.path, err = os.MkdirTemp("", temporaryPrefix)
	}
	if err != nil {
		return nil, fmt.Errorf("make a folder for Zeebe's data: %w", err)
	}
	if err := d.fill(); err != nil {
		_ = d.close() // the error that matters is the first
		return nil, fmt.Errorf("make Zeebe's folder %s: %w", d.path, err)
	}
	return d, nil
}

func (d *dataDir) fill() (err error) {
	for _, dir := range []string{d.data(), d.temporary()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if d.lock, err = fetch.TryLock(filepath.Join(d.path, ownerLock)); err != nil {
		return err
	}
	if d.lock == nil {
		return errors.New("another broker uses it")
	}
	return os.WriteFile(d.logging(), []byte(logSettings), 0o644)
}

func (d *dataDir) data() string      { return filepath.Join(d.path, "data") }
func (d *dataDir) temporary() string { return filepath.Join(d.path, "tmp") }
func (d *dataDir) logging() string   { return filepath.Join(d.path, "log4j2.xml") }

// close lets go of the folder, and removes it where it is temporary.
func (d *dataDir) close() error {
	var err error
	if !d.keep {
		err = os.RemoveAll(d.path)
	}
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
		d.lock = nil
	}
	return err
}

// youngest a folder without owner is when it is swept: a younger one may be about to be locked.
const youngest = time.Minute

// sweep removes the temporary folders whose owners are gone.
func sweep(dir string) {
	found, _ := filepath.Glob(filepath.Join(dir, temporaryPrefix+"*", ownerLock))
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < youngest {
			continue
		}
		f, err := fetch.TryLock(path)
		if f == nil || err != nil {
			continue
		}
		_ = os.RemoveAll(filepath.Dir(path)) // the next start tries again
		_ = f.Close()
	}
}
