package main

import (
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

func (c *cli) notifyCommand() *cobra.Command {
	return group("notify", "Try whether a team can be told of its dead letters",
		"Tries whether a team can be told of its dead letters, by e-mail and by webhook, as the policy\n"+
			"catalogue's teams say. The worker tells them by itself; this is for who sets it up.",
		c.notifyTestCommand())
}

type notifyFlags struct{ team, channel, policiesFile string }

func (c *cli) notifyTestCommand() *cobra.Command {
	var f notifyFlags
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Send a test message to a team, and print what each recipient's server said",
		Long: "Sends a test message to all addresses of a team and prints what the server said of each. It reads the\n" +
			"catalogue and the settings that the worker reads (RETRY_WORKER_SMTP_URL and those beside it), and\n" +
			"needs no running worker. Exit 0 where all took it, 1 where one did not.",
		Example: `  retry-worker notify test --team ti
  retry-worker notify test --team ti --channel webhook -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.notifyTest(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.team, "team", "", "team to send it to")
	cmd.Flags().StringVar(&f.channel, "channel", "", "email or webhook; left out: both, as far as the team has them")
	policiesFileFlag(cmd, &f.policiesFile)
	return cmd
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
	settings, err := config.LoadNotify()
	if err != nil {
		return &usageError{err}
	}
	from, err := loadCatalogue(f.policiesFile)
	if err != nil {
		return err
	}
	team, err := f.chosen(from)
	if err != nil {
		return &usageError{err}
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
	if err := c.print(t); err != nil {
		return err
	}
	if !t.OK {
		return errors.New("not every recipient took the test (see above)")
	}
	return nil
}

// chosen returns the team that the flags name, which has the way that they name.
func (f *notifyFlags) chosen(from *catalogue.Catalogue) (catalogue.Team, error) {
	team, known := from.Teams[decision.Team(f.team)]
	ways := notify.ChannelsOf(&team)
	switch {
	case !known:
		return team, fmt.Errorf("--team is %q, expected one of the catalogue's teams: %s", f.team,
			strings.Join(each(slices.Sorted(maps.Keys(from.Teams)), func(t decision.Team) string { return string(t) }), ", "))
	case len(ways) == 0:
		return team, fmt.Errorf("--team is %q, which the catalogue tells by no way, expected a team with email or webhook "+
			"(%s names the catalogue)", f.team, policiesFileVariable)
	case f.channel != "" && !slices.Contains(ways, notify.Channel(f.channel)):
		return team, fmt.Errorf("--channel is %q, by which the catalogue does not tell the team %s, expected %s", f.channel,
			f.team, ways[0])
	}
	return team, nil
}
