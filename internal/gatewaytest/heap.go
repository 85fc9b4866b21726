package gatewaytest

// jobHeap keeps jobs by before, the first on top. A job is in one heap at most
// and knows its place there, so taking any one out costs O(log n).
type jobHeap struct {
	jobs   []*job
	before func(a, b *job) bool
}

func byKey(a, b *job) bool { return a.Key < b.Key }
func byDue(a, b *job) bool { return a.due.Before(b.due) }

func (h *jobHeap) len() int { return len(h.jobs) }

// top is the first job; the heap must not be empty.
func (h *jobHeap) top() *job { return h.jobs[0] }

func (h *jobHeap) push(j *job) {
	j.index = len(h.jobs)
	h.jobs = append(h.jobs, j)
	h.up(j.index)
}

func (h *jobHeap) pop() *job {
	j := h.jobs[0]
	h.remove(j)
	return j
}

// remove takes out a job that is in this heap.
func (h *jobHeap) remove(j *job) {
	i, last := j.index, len(h.jobs)-1
	h.swap(i, last)
	h.jobs[last] = nil
	h.jobs = h.jobs[:last]
	j.index = -1
	if i < last {
		h.down(i)
		h.up(i)
	}
}

func (h *jobHeap) swap(a, b int) {
	h.jobs[a], h.jobs[b] = h.jobs[b], h.jobs[a]
	h.jobs[a].index, h.jobs[b].index = a, b
}

func (h *jobHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(h.jobs[i], h.jobs[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *jobHeap) down(i int) {
	for {
		first, left := i, 2*i+1
		for child := left; child < left+2 && child < len(h.jobs); child++ {
			if h.before(h.jobs[child], h.jobs[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		h.swap(i, first)
		i = first
	}
}
