-- Whether a copy of an event came from another network than the first one; false where one of the
-- two is not known, and in rows from before.
alter table replays add column if not exists network_changed Bool;
