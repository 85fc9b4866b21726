package kpi

import (
	"maps"
	"slices"
	"time"

	"retry-worker/internal/journal"
)

// LearningDays is how many days Learning looks back.
const LearningDays = 90

// LearningFigures are the names that Learnings sums up.
var LearningFigures = []journal.FigureName{journal.FigureForetold, journal.FigureForetoldSucceeded, journal.FigureForetoldError,
	journal.FigureHandedOver, journal.FigureSavedRetries, journal.FigureExplored, journal.FigureExploredRecovered}

// FirstLearningSlot is the first slot that Learnings looks at.
func FirstLearningSlot(now time.Time) int64 { return journal.WeekOf(now.AddDate(0, 0, -LearningDays)) }

// Learning is how well a policy's chances were foretold in the last LearningDays, and what early hand-over came to (R26).
type Learning struct {
	Policy string `json:"policy"`
	Days   int    `json:"windowDays"`
	// Foretold is how many retries had a chance told and came to an end; Succeeded are those of them that did.
	Foretold  int64 `json:"foretold"`
	Succeeded int64 `json:"succeeded"`
	// Brier is the mean squared error of the chances, BaseBrier that of telling every retry the share that succeeds; lower is
	// better. Both are nil where nothing was foretold.
	Brier     *float64 `json:"brier"`
	BaseBrier *float64 `json:"baseRateBrier"`
	// Reliability has the tenths of the chance in which something was foretold.
	Reliability []Tenth `json:"reliability"`
	// HandedOver are claims given to people early, SavedRetries the retries that were left. Of those retried all the same
	// Explored have ended, ExploredRecovered of them well: as large a share of the others was given up wrongly.
	HandedOver        int64 `json:"handedOver"`
	SavedRetries      int64 `json:"savedRetries"`
	Explored          int64 `json:"explored"`
	ExploredRecovered int64 `json:"exploredRecovered"`
}

// Tenth is what came of retries whose chance lay in [From, From+0.1).
type Tenth struct {
	From      float64 `json:"from"`
	Foretold  int64   `json:"foretold"`
	Succeeded int64   `json:"succeeded"`
}

// Learnings returns those of all policies of which something was foretold or handed over, by name.
func Learnings(figures []journal.Figure) []Learning {
	policies := map[string]sums{}
	for _, f := range figures {
		if policies[f.Policy] == nil {
			policies[f.Policy] = sums{}
		}
		policies[f.Policy].add(&f)
	}
	all := []Learning{}
	for _, policy := range slices.Sorted(maps.Keys(policies)) {
		s := policies[policy]
		l := Learning{Policy: policy, Days: LearningDays, Reliability: []Tenth{}, Foretold: s.total(journal.FigureForetold),
			Succeeded: s.total(journal.FigureForetoldSucceeded), HandedOver: s.total(journal.FigureHandedOver),
			SavedRetries: s.total(journal.FigureSavedRetries), Explored: s.total(journal.FigureExplored),
			ExploredRecovered: s.total(journal.FigureExploredRecovered)}
		if n := float64(l.Foretold); n > 0 {
			rate := float64(l.Succeeded) / n
			l.Brier, l.BaseBrier = new(float64(s.total(journal.FigureForetoldError))/1e4/n), new(rate*(1-rate))
		}
		for tenth := range int64(10) {
			if n := s[journal.FigureForetold][tenth]; n > 0 {
				l.Reliability = append(l.Reliability,
					Tenth{float64(tenth) / 10, n, s[journal.FigureForetoldSucceeded][tenth]})
			}
		}
		if l.Foretold+l.HandedOver+l.Explored > 0 {
			all = append(all, l)
		}
	}
	return all
}
