-- +goose Up
-- How many failures of an episode were presumed permanent (R25).

ALTER TABLE episodes ADD COLUMN presumed INTEGER NOT NULL DEFAULT 0;
