-- Merges are half of what small inserts cost in the end, and a scorer makes a part in every table
-- up to five times a second. Where some ten parts of a size are merged at once instead of five, a
-- row is rewritten less often, and up to twice as many parts are there to be read. So not for what
-- the scorer or the device API read with every batch or call: `activity`, `sessions`, `sdk_norms`.
alter table telemetry modify setting merge_selector_base = 10;

alter table devices modify setting merge_selector_base = 10;

alter table user_devices modify setting merge_selector_base = 10;

alter table ledger_entries modify setting merge_selector_base = 10;
