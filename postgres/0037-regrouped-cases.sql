-- A correction of a phone moves alerts between open cases, which their histories say.

alter table case_events drop constraint case_event_is_known;
alter table case_events add constraint case_event_is_known check (kind in
  ('reopened', 'judged', 'snoozed', 'woken', 'assigned', 'merged', 'split', 'regrouped'));
