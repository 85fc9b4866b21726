package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/app"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/config"
	"retry-worker/internal/decision"
	"retry-worker/internal/notify"
)

// testTime bounds a test of all of a team's ways.
const testTime = 2 * time.Minute

type notifyFlags struct{ team, channel, policiesFile string }

func (c *cli) notifyCommand() *cobra.Command {
	var f notifyFlags
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Send a test message to a team, and print what each recipient's server said",
		Long: "Sends a test message to all addresses of a team and prints what the server said of each. It reads the\n" +
			"catalogue and the settings that the worker reads (RETRY_WORKER_SMTP_URL and those beside it), and\n" +
			"needs no running worker. Exit 0 where all took it, 1 where one did not.",
		Example: "  retry-worker notify test --team ti --channel webhook",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.notifyTest(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.team, "team", "", "team to send it to")
	cmd.Flags().StringVar(&f.channel, "channel", "", "email or webhook; left out: both, as far as the team has them")
	policiesFileFlag(cmd, &f.policiesFile)
	return group("notify", "Try whether a team can be told of its dead letters",
		"The worker tells teams of their dead letters by itself; this is for who sets it up.", cmd)
}

// trial is what `notify test -o json` prints.
type trial struct {
	Team string `json:"team"`
	// OK where all took it.
	OK      bool          `json:"ok"`
	Results []trialResult `json:"results"`
}

type trialResult struct {
	Channel   notify.Channel `json:"channel"`
	Recipient string         `json:"recipient"`
	OK        bool           `json:"ok"`
	// Said is the server's answer, or why there is none.
	Said string `json:"said"`
}

func (c *cli) notifyTest(ctx context.Context, f notifyFlags) error {
	settings, noSettings := config.LoadNotify()
	from, err := loadCatalogue(f.policiesFile)
	if err := wrongUse(noSettings, err); err != nil {
		return err
	}
	team := from.Teams[decision.Team(f.team)]
	if ways := notify.ChannelsOf(&team); len(ways) == 0 || f.channel != "" && !slices.Contains(ways, notify.Channel(f.channel)) {
		return &usageError{fmt.Errorf("--team is %q and --channel %q, expected a team and a way by which the catalogue tells it "+
			"(%s names the catalogue): %s", f.team, f.channel, policiesFileVariable, waysOf(from))}
	}
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	all := app.Senders(settings, version).Test(ctx, decision.Team(f.team), &team, notify.Channel(f.channel), time.Now())
	t := trial{Team: f.team, OK: true}
	for _, r := range all {
		result := trialResult{Channel: r.Channel, Recipient: r.Recipient, OK: r.Err == nil, Said: r.Said}
		if r.Err != nil {
			t.OK, result.Said = false, r.Err.Error()
		}
		t.Results = append(t.Results, result)
	}
	err = c.print(t)
	if err == nil && !t.OK {
		err = errors.New("not every recipient took the test (see above)")
	}
	return err
}

// waysOf says by which ways each team is told.
func waysOf(from *catalogue.Catalogue) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(from.Teams)) {
		team := from.Teams[name]
		for _, way := range notify.ChannelsOf(&team) {
			all = append(all, string(name)+" "+string(way))
		}
	}
	return cmp.Or(strings.Join(all, ", "), "it tells none")
}
