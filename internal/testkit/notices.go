package testkit

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// keyOf returns the fields that identify a watermark.
func keyOf(m *deadletter.Watermark) deadletter.Watermark {
	return deadletter.Watermark{Team: m.Team, Channel: m.Channel, Kind: m.Kind}
}

// Watermarks implements deadletter.NoticeStore.
func (m *Memory) Watermarks(ctx context.Context) ([]deadletter.Watermark, error) {
	return ask(ctx, m, func() []deadletter.Watermark {
		return slices.SortedFunc(maps.Values(m.marks), func(a, b deadletter.Watermark) int {
			return cmp.Or(cmp.Compare(a.Team, b.Team), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Kind, b.Kind))
		})
	})
}

// MoveWatermark implements deadletter.NoticeStore.
func (m *Memory) MoveWatermark(ctx context.Context, from, to deadletter.Watermark, message *journal.Message) (bool, error) {
	return ask(ctx, m, func() bool {
		now := m.marks[keyOf(&from)]
		if now.Record != from.Record || now.Day != from.Day || journal.Milli(now.At) != journal.Milli(from.At) {
			return false
		}
		if message != nil {
			waits := func(o journal.Message) bool { return o.Queue == message.Queue && o.Key == message.Key }
			if slices.ContainsFunc(m.outbox, waits) {
				return false
			}
			c := &journal.Changes{Outbox: []journal.Message{*message}}
			c.Seal(m.head, to.At)
			m.keep(c)
		}
		to.At = stored(to.At)
		m.marks[keyOf(&to)] = to
		return true
	})
}

// TellCause implements deadletter.NoticeStore.
func (m *Memory) TellCause(ctx context.Context, c *journal.Cause) (bool, error) {
	return ask(ctx, m, func() bool {
		f := m.fingerprints[c.ID]
		if !f.Began.Equal(c.Began) || f.News != nil && !f.News.At.Before(f.Began) {
			return false
		}
		c.News.At = stored(c.News.At)
		for _, o := range m.fingerprints {
			if o.News != nil && !c.News.At.After(o.News.At) {
				c.News.At = o.News.At.Add(time.Millisecond)
			}
		}
		f.News = new(*c.News)
		m.fingerprints[c.ID] = f
		return true
	})
}
