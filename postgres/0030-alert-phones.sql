-- The phone that the install of an alert was on when it was raised, and how certain that was. Null
-- where it is not known, and of older alerts.

alter table alerts
  add column phone_id text,
  add column phone_confidence real;
