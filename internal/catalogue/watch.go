package catalogue

import (
	"crypto/sha256"

	"retry-worker/internal/reload"
)

// Watcher takes a changed catalogue up while the program runs: whole or not at all. Rejections are an *Error where the
// content is wrong, and otherwise say why the file cannot be read.
type Watcher = reload.Watcher[Catalogue]

// Hooks tell what a Watcher did.
type Hooks = reload.Hooks[Catalogue]

// Watch makes a Watcher of the file at path, of which first was loaded.
func Watch(path string, first *Catalogue, hooks Hooks) *Watcher {
	return reload.Watch(reload.File[Catalogue]{Path: path, Read: read, Parse: Parse}, first, sha256.Sum256(first.content),
		hooks)
}
