-- +goose Up
-- What an attempt was decided by: the version of the catalogue, and what its rule matched, redacted. Both are empty in
-- records of workers that did not keep them, whose digests do not cover them. Those go on working on this schema.

-- While a backup reads the table for minutes, the workers must not wait behind the change that waits for it: who brings
-- it tries again.
SET LOCAL lock_timeout = '500ms';
ALTER TABLE attempts
    ADD COLUMN catalogue    text NOT NULL DEFAULT '',
    ADD COLUMN matched_text text NOT NULL DEFAULT '';
