package access

import "retry-worker/internal/reload"

// Watcher takes a changed tokens file up while the program runs: whole or not at all. A token taken out of it, and one
// whose role was lowered, has its effect within 11 s, on its sessions too. A file that is gone or without tokens is
// rejected like a wrong one: to shut everybody out, leave one token that nobody has, or stop the worker.
type Watcher = reload.Watcher[Tokens]

// WatchHooks tell what a Watcher did.
type WatchHooks = reload.Hooks[Tokens]

// Watch makes a Watcher of the file at path, of which first was loaded.
func Watch(path string, first *Tokens, hooks WatchHooks) *Watcher {
	return reload.Watch(reload.File[Tokens]{Path: path, Read: readFile, Parse: Parse}, first, first.sum, hooks)
}
