package testkit

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
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

// OpenDeadLetters implements deadletter.NoticeStore: it looks at every dead letter there is.
func (m *Memory) OpenDeadLetters(
	ctx context.Context, team decision.Team, after int64, top int, older ...time.Time,
) (deadletter.NoticeCount, error) {
	return ask(ctx, m, func() deadletter.NoticeCount {
		sum := deadletter.NoticeCount{Through: m.head.Record}
		if older != nil {
			sum.Older = make([]int64, len(older))
		}
		var all []*journal.KeyedDeadLetter
		for _, l := range m.letters {
			if d := &l.DeadLetter; d.State == journal.DeadLetterOpen && d.Team == team && d.Record > after {
				all = append(all, l)
			}
		}
		slices.SortFunc(all, func(a, b *journal.KeyedDeadLetter) int {
			x, y := &a.DeadLetter, &b.DeadLetter
			return cmp.Or(cmp.Compare(x.Fingerprint, y.Fingerprint), cmp.Compare(a.Subject.Policy, b.Subject.Policy),
				cmp.Compare(x.Reason, y.Reason), x.CreatedAt.Compare(y.CreatedAt))
		})
		causes := map[[3]string]int{} // indexes of Top
		for _, l := range all {
			m.add(&sum, causes, l, older)
		}
		slices.SortStableFunc(sum.Top, func(a, b deadletter.NoticeCause) int {
			return cmp.Or(cmp.Compare(b.N, a.N), a.Oldest.Compare(b.Oldest))
		})
		sum.Causes, sum.Top = int64(len(causes)), first(sum.Top, max(top, 1))
		return sum
	})
}

func (m *Memory) add(sum *deadletter.NoticeCount, causes map[[3]string]int, l *journal.KeyedDeadLetter, older []time.Time) {
	d := &l.DeadLetter
	sum.Cents += d.Cents
	if sum.N++; sum.N == 1 || d.CreatedAt.Before(sum.Oldest) {
		sum.Oldest = d.CreatedAt
	}
	for i, t := range older {
		if d.CreatedAt.Before(t) {
			sum.Older[i]++
		}
	}
	key := [3]string{d.Fingerprint, l.Subject.Policy, string(d.Reason)}
	i, known := causes[key]
	if !known {
		c := deadletter.NoticeCause{Reason: d.Reason, Oldest: d.CreatedAt, Cause: journal.Fingerprint{Policy: l.Subject.Policy}}
		if f, known := m.fingerprints[key[0]]; known {
			c.Cause = uncounted(&f)
		}
		i, sum.Top = len(sum.Top), append(sum.Top, c)
		causes[key] = i
	}
	sum.Top[i].N++
	sum.Top[i].Cents += d.Cents
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
