-- What clients choose is bounded and seen: names beyond the catalog, and ids that stand for none.

alter table telemetry
  -- Values of `signals` that only the body has: the tenant sends more names than get a path.
  add column if not exists signals_left_out UInt16,
  -- The fields among device_id, session_id, user_id and account_id whose id stands for none.
  add column if not exists placeholder_ids Array(LowCardinality(String));

-- An id that stands for none is nobody's: it is no user of a device, and no device of a user or a
-- session. A device's rows keep their session, by which a repeated event is known.
alter table activity_of_telemetry modify query
select
  tenant_id,
  reinterpretAsUInt64(SHA256(concat(key.1, ' ', key.2))) as key_hash,
  position,
  received_at,
  reinterpretAsUInt64(SHA256(event_id)) as event_hash,
  toFixedString(
    concat(
      toFixedString(
        multiIf(
          key.1 = 'device',
          concat(
            reinterpretAsFixedString(sipHash64(session_id)),
            reinterpretAsFixedString(
              if(user_id = '' or has(placeholder_ids, 'user_id'), 0, sipHash64(user_id))
            ),
            reinterpretAsFixedString(
              if(account_id = '' or has(placeholder_ids, 'account_id'), 0, sipHash64(account_id))
            ),
            reinterpretAsFixedString(sipHash64(lower(platform))),
            reinterpretAsFixedString(detected_bits),
            reinterpretAsFixedString(clean_bits)
          ),
          key.1 = 'user',
          concat(
            repeat('\0', 48),
            reinterpretAsFixedString(if(has(placeholder_ids, 'device_id'), 0, sipHash64(device_id)))
          ),
          concat(
            repeat('\0', 56),
            reinterpretAsFixedString(if(has(placeholder_ids, 'device_id'), 0, sipHash64(device_id)))
          )
        ),
        64
      ),
      reinterpretAsFixedString(event_hash),
      reinterpretAsFixedString(toUnixTimestamp64Milli(received_at))
    ),
    80
  ) as told
from telemetry
array join arrayConcat(
  [('device', device_id), ('session', session_id)],
  arrayMap(
    id -> ('user', id),
    arrayDistinct(arrayFilter(id -> id != '', [user_id, account_id]))
  )
) as key;
