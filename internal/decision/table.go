package decision

// table knows needles by their keys, of which several may share one. They are added, then it is sealed, then they are
// found.
type table struct {
	seen bloom
	// slots of the keys, a power of two of them: a key's is the first free one from its hash on.
	slots []slot
	keys  int
	// needles in the order of their slots, those of a key as they were added.
	needles []needle
	added   []keyed
}

// slot has needles [first, first+count); none while count is 0.
type slot struct {
	key          uint64
	first, count int32
}

type keyed struct {
	key uint64
	needle
}

func (t *table) add(key uint64, n needle) {
	if 2*t.keys >= len(t.slots) {
		t.grow()
	}
	s := t.slot(key)
	if s.count == 0 {
		s.key = key
		t.keys++
		t.seen.add(key)
	}
	s.count++
	t.added = append(t.added, keyed{key, n})
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]slot, max(16, 2*len(old)))
	for _, s := range old {
		if s.count > 0 {
			*t.slot(s.key) = s
		}
	}
}

// slot is the one of key, or the one it would get.
func (t *table) slot(key uint64) *slot {
	last := uint64(len(t.slots) - 1)
	for i := hash(key); ; i++ {
		if s := &t.slots[i&last]; s.count == 0 || s.key == key {
			return s
		}
	}
}

// count of the needles of key.
func (t *table) count(key uint64) int {
	if len(t.slots) == 0 {
		return 0
	}
	return int(t.slot(key).count)
}

// seal lays the needles that were added side by side.
func (t *table) seal() {
	t.needles = make([]needle, len(t.added))
	first := int32(0)
	for i := range t.slots {
		s := &t.slots[i]
		s.first, first = first, first+s.count
	}
	for _, k := range t.added {
		s := t.slot(k.key)
		t.needles[s.first] = k.needle
		s.first++
	}
	for i := range t.slots {
		t.slots[i].first -= t.slots[i].count
	}
	t.added = nil
}

// of are the needles of key.
func (t *table) of(key uint64) []needle {
	if !t.seen.mayHave(key) {
		return nil
	}
	s := t.slot(key)
	return t.needles[s.first : s.first+s.count]
}

// bloom is a set of keys that may say it has one that it has not.
type bloom [1 << (16 - 6)]uint64

// hash of a key, in 16 bits.
func hash(key uint64) uint64 { return key * 0x9e3779b97f4a7c15 >> 48 }

func (b *bloom) add(key uint64) {
	h := hash(key)
	b[h>>6] |= 1 << (h & 63)
}

func (b *bloom) mayHave(key uint64) bool {
	h := hash(key)
	return b[h>>6]&(1<<(h&63)) != 0
}
