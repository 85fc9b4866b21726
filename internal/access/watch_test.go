package access_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/testkit"
)

const maria = "maria operator - "

// summary is who has which role.
func summary(tokens *access.Tokens) string {
	var all []string
	for _, holder := range tokens.Holders() {
		all = append(all, holder.Name+"="+holder.Role.String())
	}
	return strings.Join(all, ",")
}

// A changed file is in force within 11 s; one that lets nobody in, or others read it, or is gone, changes nothing and is
// told once. How a file is watched, internal/catalogue's tests say.
func TestTokensAreTakenUp(t *testing.T) {
	path := tokensFile(t, 0o600, maria+hashes[0])
	synctest.Test(t, func(t *testing.T) {
		w, err := access.Open(path)
		testkit.Must(t, err)
		var mu sync.Mutex // synctest.Wait is no edge for the race detector when the bubble slept last
		var told []string
		tell := func(line string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, strings.ReplaceAll(line, path, "PATH"))
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() {
			w.Run(ctx, func(next *access.Tokens, err error) {
				if err != nil {
					tell("rejected " + err.Error())
					return
				}
				tell("in force " + summary(next))
			})
		})
		for _, step := range []struct {
			do   func() error
			want string // how what is told begins
			hold string
		}{
			{func() error { return os.WriteFile(path, []byte("maria boss - "+hashes[0]), 0o600) }, "rejected PATH:1: role is", "maria=operator"},
			{func() error { return os.WriteFile(path, nil, 0o600) }, "rejected PATH:1: there is no", "maria=operator"},
			{func() error { return os.Chmod(path, 0o644) }, "rejected tokens file PATH lets", "maria=operator"},
			{func() error { return os.Remove(path) }, "rejected tokens file PATH canno", "maria=operator"},
			{func() error { rewrite(t, path, maria+hashes[0]); return nil }, "in force maria=operator", "maria=operator"},
			{func() error { rewrite(t, path, "maria viewer - "+hashes[0], "ana admin - "+hashes[1]); return nil },
				"in force maria=viewer,ana=admin", "maria=viewer,ana=admin"},
		} {
			testkit.Must(t, step.do())
			time.Sleep(11 * time.Second)
			synctest.Wait()
			mu.Lock()
			heard := slices.Clone(told)
			told = nil
			mu.Unlock()
			if len(heard) != 1 || !strings.HasPrefix(heard[0], step.want) || summary(w.Current()) != step.hold {
				t.Errorf("%s hold tokens, and told was %q; want %s and %q", summary(w.Current()), heard, step.hold, step.want)
			}
		}
	})
}
