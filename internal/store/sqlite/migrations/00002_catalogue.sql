-- +goose Up
-- What an attempt was decided by: the version of the catalogue, and what its rule matched, redacted. Both are empty in
-- records of workers that did not keep them, whose digests do not cover them. Those go on working on this schema.

ALTER TABLE attempts ADD COLUMN catalogue TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN matched_text TEXT NOT NULL DEFAULT '';
