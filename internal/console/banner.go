package console

import "retry-worker/internal/destination"

// banners say on every page what does not work: the engine, the journal, and, where the page does not say so itself,
// destinations.
func (p *Pages) banners(v *visit, section string) (all []link) {
	if v.who.Role == 0 {
		return nil
	}
	h := p.Health()
	for _, row := range []healthRow{v.signal("engine", h.Engine), v.signal("journal", h.Journal)} {
		if row.Badge.Tone == "bad" {
			all = append(all, link{row.Name + ": " + row.Badge.Word + ". " + row.Detail, "/#health"})
		}
	}
	o := p.open.Load()
	if o == nil || section == "overview" || section == "portals" {
		return all
	}
	known, err := o.gates.Destinations()
	if err != nil {
		return all // the page itself says so
	}
	down := int64(0)
	for i := range known {
		if known[i].State.Phase == destination.Down {
			down++
		}
	}
	if down > 0 {
		all = append(all, link{v.Count("banner.portals", down), "/destinations"})
	}
	return all
}
