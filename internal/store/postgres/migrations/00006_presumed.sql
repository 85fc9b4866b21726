-- +goose Up
-- How many failures of an episode were presumed permanent (R25).

SET LOCAL lock_timeout = '500ms';
ALTER TABLE episodes ADD COLUMN presumed bigint NOT NULL DEFAULT 0;
