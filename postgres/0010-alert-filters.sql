-- What the filters of the alert list need. The list in its order is one covering index, so that a
-- filter without an index of its own is decided, and a total counted, without reading an alert.

alter table alerts
  -- The codes of the reasons.
  add column flags jsonb not null
    generated always as (jsonb_path_query_array(reasons, '$[*].code')) stored,
  -- The last change of the disposition; null since the alert was raised.
  add column changed_at timestamptz(3);

drop index alerts_newest_first;
create index alerts_newest_first on alerts (tenant_id, created_at desc, alert_id desc)
  include (disposition, action, risk_score, flags, changed_at);

-- The session leads: the alerts of a session are found by it, whatever the device.
drop index one_alert_per_device_session_and_action;
create unique index one_alert_per_session_device_and_action
  on alerts (tenant_id, session_id, device_id, action);

drop index alerts_by_user;
create index alerts_by_user on alerts (tenant_id, user_id, created_at desc, alert_id desc)
  where user_id is not null;

-- Alerts whose disposition changed: none of them when they are raised, so raising does not pay.
create index alerts_by_change on alerts (tenant_id, changed_at)
  include (disposition, action, risk_score, flags, created_at, alert_id)
  where changed_at is not null;
