package main

import "time"

// drains measures how the backlog of each outage drains: how long it takes, and how many claims are sent in 10 s
// meanwhile.
type drains struct {
	outages  []outage
	claims   []claim
	capacity int
	left     []int // of each outage, claims that are not done
	backlog  []int // of each outage, those at the recovery
	gone     []time.Duration
	current  int             // the outage that began last; -1 before the first
	window   []time.Duration // submissions of the last 10 s since the recovery
	peak     int
}

func newDrains(outages []outage, claims []claim, capacity int) *drains {
	d := &drains{outages: outages, claims: claims, capacity: capacity, left: make([]int, len(outages)),
		backlog: make([]int, len(outages)), gone: make([]time.Duration, len(outages)), current: -1}
	for i := range claims {
		if of := claims[i].outage; of >= 0 {
			d.left[of]++
		}
	}
	copy(d.backlog, d.left)
	return d
}

const peakWindow = 10 * time.Second

// sent records a submission.
func (d *drains) sent(at time.Duration) {
	for d.current+1 < len(d.outages) && at >= d.outages[d.current+1].start {
		d.current, d.window = d.current+1, nil
	}
	if d.current < 0 || at < d.outages[d.current].end || d.left[d.current] == 0 {
		return
	}
	for len(d.window) > 0 && d.window[0] <= at-peakWindow {
		d.window = d.window[1:]
	}
	d.window = append(d.window, at)
	d.peak = max(d.peak, len(d.window))
}

// done records that nothing more is to be done for a claim.
func (d *drains) done(claim int, at time.Duration) {
	of := d.claims[claim].outage
	if of < 0 {
		return
	}
	d.left[of]--
	if at < d.outages[of].end {
		d.backlog[of]--
	}
	d.gone[of] = max(d.gone[of], at)
}

// close adds the measurements to t. An outage counts for nothing if its backlog lasted until the next one: it could
// not drain.
func (d *drains) close(t *tally) {
	allowed := float64((d.capacity + 5) / 6)
	t.peak = max(t.peak, float64(d.peak)/allowed)
	for i, o := range d.outages {
		if d.backlog[i] == 0 || i+1 < len(d.outages) && d.gone[i] > d.outages[i+1].start {
			continue
		}
		t.drained += (d.gone[i] - o.end).Minutes()
		t.ideal += float64(d.backlog[i])/float64(d.capacity) + 5
	}
}

// open returns the first instant, not before at, when a service's calendar is open.
func (o *options) open(service string, at time.Duration) time.Duration {
	return o.destination(service).Calendar.Next(epoch.Add(at)).Sub(epoch)
}

// foresee plays the clairvoyant: it sends each claim as soon as the portal is up, open and has room, in order of
// arrival.
func foresee(outages []outage, claims []claim, o *options, t *tally) {
	service := outages[0].service
	d := newDrains(outages, claims, o.capacity)
	p := portal{outages: outages}
	var free time.Duration
	for i := range claims {
		c := &claims[i]
		at := max(c.arrived, free)
		for at = o.open(service, at); p.downUntil(at) > 0; at = o.open(service, p.downUntil(at)) {
		}
		if limit := o.policy.TimeLimit(service, epoch.Add(c.arrived)); !limit.IsZero() && epoch.Add(at).After(limit) {
			d.done(i, at)
			t.giveUp(c)
			continue
		}
		free = at + time.Minute/time.Duration(o.capacity)
		d.sent(at)
		t.submit(c, false)
		d.done(i, at+answerTime)
		t.recover(c, outages, at+answerTime)
	}
	d.close(t)
}
