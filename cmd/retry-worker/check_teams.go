package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"retry-worker/internal/app"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/config"
	"retry-worker/internal/notify"
)

// inspectTeams says which team cannot be told of its dead letters; nothing where none is to be.
func inspectTeams(ctx context.Context, i *inspection, s config.Settings) {
	from := catalogue.Default()
	if s.PoliciesFile != "" {
		var err error
		if from, err = catalogue.Load(s.PoliciesFile); err != nil {
			i.step(ctx, "policies", false, func(context.Context) (string, error) { return "", err })
			return
		}
	}
	told := 0
	for _, t := range from.Teams {
		if len(notify.ChannelsOf(&t)) > 0 {
			told++
		}
	}
	if told > 0 {
		i.step(ctx, "teams", false, func(context.Context) (string, error) {
			if wrong := notify.Problems(from, s.Notify.SMTP != nil); len(wrong) > 0 {
				return "", errors.New(strings.Join(wrong, "; "))
			}
			return fmt.Sprintf("%s told of dead letters by e-mail or webhook", counted(told, "team is", "teams are")), nil
		})
	}
	if s.Notify.SMTP != nil {
		i.step(ctx, "mail server", false, func(ctx context.Context) (string, error) {
			return fmt.Sprintf("%s:%d takes connections", s.Notify.SMTP.Host, s.Notify.SMTP.Port), app.Mailer(s.Notify).Check(ctx)
		})
	}
}
