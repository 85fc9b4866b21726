package sqlite

import (
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"
)

// pageBytes of SQLite's own pages, as it makes files unless told otherwise.
const pageBytes = 4 << 10

// packPages has SQLite keep the pages of all connections in one block, side by side. A page with its header has 4.2 KiB,
// for which the library's own allocator takes 8 KiB: a full cache cost twice what it holds. The block is of the size of the
// writer's cache; readers share it, and where it is full the page unused for longest makes room. SQLite takes it before
// the first connection of the process only. Where another package had one, pages cost what they did: memory, and no more.
var packPages = sync.OnceFunc(func() {
	tls := libc.NewTLS()
	defer tls.Close()
	header, err := headerBytes(tls)
	if err != nil {
		return
	}
	slot := pageBytes + header
	slots := pageCache << 10 / slot
	block, err := outside(tls, int(slot*slots)) // until the process ends
	if err != nil {
		return
	}
	if configure(tls, sqlite3.SQLITE_CONFIG_PAGECACHE, block, slot, slots) != nil {
		libc.Xfree(tls, block)
	}
})

// headerBytes is what SQLite keeps beside each page.
func headerBytes(tls *libc.TLS) (int32, error) {
	found, err := outside(tls, int(unsafe.Sizeof(int32(0))))
	if err != nil {
		return 0, err
	}
	defer libc.Xfree(tls, found)
	err = configure(tls, sqlite3.SQLITE_CONFIG_PCACHE_HDRSZ, found)
	return libc.AtomicLoadPInt32(found), err
}

// configure is sqlite3_config.
func configure(tls *libc.TLS, option int32, arguments ...any) error {
	list := libc.NewVaList(arguments...)
	defer libc.Xfree(tls, list)
	if code := sqlite3.Xsqlite3_config(tls, option, list); code != sqlite3.SQLITE_OK {
		return fmt.Errorf("SQLite refuses its option %d: code %d", option, code)
	}
	return nil
}

// outside is room outside of Go's heap, where SQLite can keep pointers.
func outside(tls *libc.TLS, bytes int) (uintptr, error) {
	p := libc.Xmalloc(tls, types.Size_t(bytes))
	if p == 0 {
		return 0, fmt.Errorf("found no room for %d bytes of SQLite's", bytes)
	}
	return p, nil
}
