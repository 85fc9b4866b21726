package app

import (
	"reflect"
	"slices"
	"strings"

	"go.uber.org/zap"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/config"
	"retry-worker/internal/decision"
	"retry-worker/internal/metrics"
)

// openCatalogue reads the policies file, or takes the built-in catalogue where there is none. A file that is wrong is
// refused at the start: nobody has decided by it yet.
func (a *App) openCatalogue(b metrics.Build) error {
	first := catalogue.Default()
	if path := a.settings.PoliciesFile; path != "" {
		var err error
		if first, err = catalogue.Load(path); err != nil {
			return problemsWith("RETRY_WORKER_POLICIES_FILE", err)
		}
	}
	a.metrics = metrics.New(b, first.Policies)
	a.metrics.SetCatalogue(first.Version)
	a.catalogue = func() *catalogue.Catalogue { return first }
	if path := a.settings.PoliciesFile; path != "" {
		watcher := catalogue.Watch(path, first, catalogue.Hooks{
			Changed: a.catalogueChanged, Rejected: a.catalogueRejected, Recovered: a.catalogueRecovered,
		})
		a.catalogue = watcher.Current
		a.watches = append(a.watches, watcher.Run)
	}
	return nil
}

// policies in force.
func (a *App) policies() decision.Policies { return a.catalogue().Policies }

// logCatalogue says what is in force at the start.
func (a *App) logCatalogue() {
	first := a.catalogue()
	a.log.Info("policy catalogue in force", zap.String("catalogue", first.Version),
		zap.String("source", first.Source), zap.Strings("policies", first.Policies.Names()))
}

func (a *App) catalogueChanged(before, after *catalogue.Catalogue) {
	a.health.reject(nil)
	a.metrics.StartPolicies(after.Policies)
	a.metrics.SetCatalogue(after.Version)
	a.teamsChanged(after)
	a.destinationsChanged(after)
	added, removed, changed := differences(before.Policies, after.Policies)
	a.policiesFile().changed(
		zap.String("oldVersion", before.Version), zap.String("newVersion", after.Version), zap.String("source", after.Source),
		zap.Strings("added", added), zap.Strings("removed", removed), zap.Strings("changed", changed))
}

func (a *App) catalogueRejected(err error) {
	a.health.reject(err)
	version := a.catalogue().Version
	a.policiesFile().rejected(err, "version "+version+" stays in force", zap.String("catalogue", version))
}

func (a *App) catalogueRecovered(current *catalogue.Catalogue) {
	a.health.reject(nil)
	a.policiesFile().recovered(zap.String("catalogue", current.Version))
}

func (a *App) policiesFile() watchedFile {
	return watchedFile{a, aboutCatalogue, "the policies file", a.metrics.SetCatalogueRejected}
}

// watchedFile is one that is taken up again when it changes. One that is wrong then changes nothing: the log, /readyz
// and a gauge say so until it is right.
type watchedFile struct {
	*App
	about, name string
	refused     func(bool)
}

func (f watchedFile) changed(fields ...zap.Field) {
	f.log.Info(f.name+" has changed and is in force", append(fields, zap.String("event", f.about+"_changed"))...)
}

// rejected says what is wrong with the file, and what stays in force.
func (f watchedFile) rejected(err error, stays string, fields ...zap.Field) {
	lines := linesOf(err)
	f.refused(true)
	f.readiness.Note(f.about, f.about+" rejected: "+strings.Join(lines, "; ")+"; "+stays)
	f.log.Error(f.name+" has changed and is refused; "+stays,
		append(fields, zap.String("event", f.about+"_rejected"), zap.Strings("problems", lines))...)
}

// recovered says that the file is what is in force: as it was before, or corrected.
func (f watchedFile) recovered(fields ...zap.Field) {
	f.refused(false)
	f.readiness.Note(f.about, "")
	f.log.Info(f.name+" is right again and in force", append(fields, zap.String("event", f.about+"_recovered"))...)
}

// linesOf returns what is wrong with a file, a line each.
func linesOf(err error) []string { return strings.Split(err.Error(), "\n") }

// problemsWith says what is wrong with a file as what is wrong with the setting that names it.
func problemsWith(setting string, err error) config.Problems {
	var all config.Problems
	for _, line := range linesOf(err) {
		all = append(all, setting+": "+line)
	}
	return all
}

// differences are the names of the policies that two catalogues have not alike, each list in alphabetical order.
func differences(before, after decision.Policies) (added, removed, changed []string) {
	for _, name := range after.Names() {
		switch old := before[name]; {
		case old == nil:
			added = append(added, name)
		case !alike(old, after[name]):
			changed = append(changed, name)
		}
	}
	removed = slices.DeleteFunc(before.Names(), func(name string) bool { return after[name] != nil })
	return added, removed, changed
}

// alike reports whether two policies decide alike; the version of their catalogue says nothing of that.
func alike(a, b *decision.Policy) bool {
	if a.IDPattern.String() != b.IDPattern.String() || !reflect.DeepEqual(a.Rules.Rules(), b.Rules.Rules()) {
		return false
	}
	x, y := *a, *b
	for _, p := range []*decision.Policy{&x, &y} {
		p.Catalogue, p.IDPattern, p.Rules = "", nil, nil // what is compiled was compared by its source
	}
	return reflect.DeepEqual(x, y)
}
