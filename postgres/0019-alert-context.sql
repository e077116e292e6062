-- What the telemetry says of the app and the phone of an alert, and the time of the last change of an
-- alert that clients see. Older alerts know neither platform nor versions.

alter table alerts
  -- In one spelling: android, ios, or another in lower case.
  add column platform text,
  add column sdk_version text,
  add column app_version text,
  add column device_model text;
comment on column alerts.changed_at is
  'The last change of disposition, assignee or notes; null since the alert was raised.';

drop index alerts_newest_first;
create index alerts_newest_first on alerts (tenant_id, created_at desc, alert_id desc)
  include (disposition, action, risk_score, flags, changed_at, assignee, platform);
drop index alerts_by_change;
create index alerts_by_change on alerts (tenant_id, changed_at)
  include (disposition, action, risk_score, flags, created_at, alert_id, assignee, platform)
  where changed_at is not null;
