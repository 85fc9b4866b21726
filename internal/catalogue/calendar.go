package catalogue

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for containers without a zone database

	"retry-worker/internal/calendar"
	"retry-worker/internal/destination"
	"retry-worker/internal/smallfile"
)

// defaultZone is the zone of a calendar that names none.
const defaultZone = "America/Sao_Paulo"

// calendar makes the calendar of a destination, or of a policy.
func (b *builder) calendar(path string, doc *calendarSettings) *calendar.Calendar {
	name := cmp.Or(doc.Zone, defaultZone)
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		b.mismatch(path+".zone", "a name of the time zone database, such as "+defaultZone)
		return nil
	}
	c, err := calendar.New(zone, doc.Windows, b.holidays(path+".holidays", doc.Holidays))
	if never, ok := errors.AsType[calendar.NeverOpenError](err); ok {
		found, at := "holidays that leave no day open", path+".holidays"
		if int(never) < len(doc.Windows) {
			found, at = "a window that is never open ("+doc.Windows[never].String()+")", itemOf(path+".windows", int(never))
		}
		b.problem(at, found, "one that is open on some day")
	}
	return c
}

// holidays returns the holidays of sets and files. A file may also take some away.
func (b *builder) holidays(path string, names []string) []calendar.Holiday {
	all, cancelled := []calendar.Holiday(nil), map[calendar.Day]bool{}
	for i, name := range names {
		at := itemOf(path, i)
		switch set := calendar.Holidays(name); {
		case name == "": // already reported
		case strings.HasSuffix(name, ".ics"):
			content, err := readBeside(b.source, name)
			var added, removed []calendar.Holiday
			if err == nil {
				added, removed, err = calendar.ReadICS(string(content))
			}
			if err != nil {
				b.problem(at, quote(name)+": "+err.Error(), "a file of whole days in the iCalendar format, beside this file")
			}
			all = append(all, added...)
			for _, h := range removed {
				cancelled[h.Day] = true
			}
		case set == nil:
			b.mismatch(at, "a file that ends in .ics, or one of "+oneOf(name, calendar.Sets()))
		default:
			all = append(all, set...)
		}
	}
	return slices.DeleteFunc(all, func(h calendar.Holiday) bool { return cancelled[h.Day] })
}

// readBeside reads a file in the catalogue's folder.
func readBeside(source, name string) ([]byte, error) {
	if !filepath.IsLocal(name) {
		return nil, errors.New("it is not beside this file")
	}
	return smallfile.Read(filepath.Join(filepath.Dir(source), name), maxBytes)
}

// fileName matches the names of holiday files in a catalogue.
var fileName = regexp.MustCompile(`[^\s\[\],"'#]+\.ics\b`)

// withFiles returns content, followed by comments with the checksums of the holiday files that it names. So a changed
// holiday file makes another catalogue.
func withFiles(source string, content []byte) []byte {
	names := make(map[string]bool)
	for _, name := range fileName.FindAll(content, -1) {
		names[string(name)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		file, err := readBeside(source, name)
		sum := sha256.Sum256(file)
		if err == nil {
			content = fmt.Appendf(content, "\n# %s: %x", name, sum[:6])
		}
	}
	return content
}

// openings gives each policy its destinations, or a calendar of its own.
func (b *builder) openings(doc *document) {
	for name, p := range b.catalogue.Policies {
		if p.Destination != nil {
			p.Destinations = b.catalogue.Destinations
		} else if own := doc.Policies[name].Calendar; own != nil {
			p.Destinations.Others = destination.Defaults()
			p.Destinations.Others.Calendar = b.calendar(join("policies", name)+".calendar", own)
		}
	}
}
