package access

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// cutWriter notes that its request was cut off.
type cutWriter struct {
	http.ResponseWriter
	read, write bool
}

func (w *cutWriter) SetReadDeadline(t time.Time) error {
	w.read = t.Before(time.Now())
	return nil
}

func (w *cutWriter) SetWriteDeadline(t time.Time) error {
	w.write = t.Before(time.Now())
	return nil
}

// Of the requests of strangers the twenty-first of one address, and the two hundred and first of all, cut off the one
// that began first; what has ended counts no more, and is never touched.
func TestStrangersUnderWay(t *testing.T) {
	var s strangers
	begin := func(address string) (*cutWriter, func()) {
		w, r := &cutWriter{}, httptest.NewRequest(http.MethodPost, "/login", http.NoBody)
		r.RemoteAddr = address + ":1"
		return w, s.begin(w, r)
	}
	ended, end := begin("192.0.2.9")
	end()
	var own []*cutWriter
	for range 20 {
		w, _ := begin("192.0.2.9")
		own = append(own, w)
	}
	if own[0].read || ended.read {
		t.Fatal("one is cut off where there is room")
	}
	_, _ = begin("192.0.2.9")
	if !own[0].read || !own[0].write || own[1].read || ended.read {
		t.Error("the twenty-first of one address does not cut off its first alone")
	}
	for i := range 180 {
		_, _ = begin("198.51.100." + string(rune('0'+i%10)))
	}
	if own[1].read {
		t.Error("one is cut off where there is room for all")
	}
	_, _ = begin("203.0.113.1")
	if !own[1].read || own[2].read {
		t.Error("the two hundred and first of all does not cut off the first alone")
	}
}
