package access

import (
	"container/list"
	"net/http"
	"net/netip"

	"retry-worker/internal/webserver"
)

// maxAddresses that are kept apart; beyond that the one that was used longest ago is forgotten.
const maxAddresses = 4096

// recent keeps a value for each of the networks that were used last. Not for concurrent use.
type recent[T any] struct {
	each  map[netip.Prefix]*list.Element // of what order holds
	order list.List                      // of *kept[T], the last used in front
}

type kept[T any] struct {
	of    netip.Prefix
	value T
}

func newRecent[T any]() recent[T] { return recent[T]{each: map[netip.Prefix]*list.Element{}} }

// get the value of a network, which is not a use of it; nil where there is none.
func (r *recent[T]) get(of netip.Prefix) *T {
	e := r.each[of]
	if e == nil {
		return nil
	}
	return &e.Value.(*kept[T]).value
}

// use the value of a network, which is fresh's where there was none.
func (r *recent[T]) use(of netip.Prefix, fresh func() T) *T {
	e := r.each[of]
	if e == nil {
		e = r.order.PushFront(&kept[T]{of: of, value: fresh()})
		r.each[of] = e
	}
	r.order.MoveToFront(e)
	if r.order.Len() > maxAddresses {
		delete(r.each, r.order.Remove(r.order.Back()).(*kept[T]).of)
	}
	return &e.Value.(*kept[T]).value
}

// peer returns where a request comes from: of what headers say, webserver.Listen believes a proxy's alone.
func peer(r *http.Request) netip.Addr { return webserver.Address(r.RemoteAddr) }
